"""Scripts that come on their port, without a socket."""

import random

import pytest

from bid_ros.robots.ur.twin.script_port import MAX_SCRIPT, ScriptSession, demand_control_script
from bid_ros.sim.net import Misbehaviour

SCRIPT = """def rtde_control():
    global reg_offset_float = # float register offset
{offset}    global reg_offset_int = # int register offset
{offset}    global servo_gain = 300
    def process_cmd(cmd):
    end
    textmsg("RTDE Control Script Loaded (14.02.2024-12:23)")
end
"""


def test_control_script_is_recognised():
    demand_control_script(SCRIPT.format(offset=0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("popup('hello')\n", "begins 'popup"),
        ("\x1b[2J\n", r"begins '\\x1b\[2J'"),
        ("", "begins ''"),
        (SCRIPT.format(offset=24), "register offset 24; valid is 0"),
    ],
)
def test_other_programs_are_refused(text, message):
    with pytest.raises(Misbehaviour, match=message):
        demand_control_script(text)


class Runner:
    """Counts how often it is to run."""

    def __init__(self):
        self.runs = self.stops = 0

    def run(self):
        self.runs += 1

    def stop_by_script(self):
        self.stops += 1


class Uploads(ScriptSession):
    name = "a client"
    refusals = 0

    def __init__(self):
        super().__init__(Runner())

    def refuse(self):
        self.refusals += 1


def test_script_runs_once_it_is_complete():
    uploads = Uploads()
    text = SCRIPT.format(offset=0).encode()
    for start in range(0, len(text), 7):
        assert not uploads.machine.runs
        uploads.received(text[start : start + 7])
    assert uploads.machine.runs == 1
    uploads.received(text + text)
    assert uploads.machine.runs == 3 and not uploads.refusals


def test_stop_program_ends_the_program_and_is_none_itself():
    uploads = Uploads()
    uploads.received(b"stop pro")
    assert not uploads.machine.stops
    uploads.received(b"gram\n")
    assert (uploads.machine.stops, uploads.machine.runs, uploads.refusals) == (1, 0, 0)


def test_a_refusal_is_told_before_the_connection_ends():
    uploads = Uploads()
    with pytest.raises(Misbehaviour, match="a client sent a program that begins 'popup"):
        uploads.received(b"popup('hello')\n")
    assert uploads.refusals == 1


def test_script_without_an_end_is_dropped():
    uploads = Uploads()
    with pytest.raises(Misbehaviour, match="a client sent a script of over 1000000 bytes"):
        for _ in range(MAX_SCRIPT // 50_000 + 1):
            uploads.received(b"def x():\n" + b" " * 50_000)


def test_scripts_survive_mutation():
    generator = random.Random(8)
    text = SCRIPT.format(offset=0).encode()
    for _ in range(500):
        data = bytearray(text)
        for _ in range(generator.randrange(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            Uploads().received(bytes(data))
        except Misbehaviour as error:
            assert "valid" in str(error) or "the twin runs" in str(error)

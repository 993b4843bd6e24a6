"""RTDE packages, recipes and scripts, without a socket."""

import random
import struct

import pytest

from bid_ros.robots.ur.twin.fields import (
    COUNTS,
    FORMATS,
    INPUT_TYPES,
    NOT_FOUND,
    OUTPUT_TYPES,
    FieldTable,
    Inputs,
)
from bid_ros.robots.ur.twin.rtde_server import ERROR, field_names, text_message
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


def test_text_message_has_lengths_source_and_level():
    assert text_message("no", "RTDE", ERROR) == b"\x00\x0cM\x02no\x04RTDE\x01"
    assert len(text_message("x" * 999, "s", 3)) == 3 + 1 + 255 + 1 + 1 + 1


def test_field_names():
    assert field_names(b"a,b,") == field_names(b"a, b") == ["a", "b"]
    for payload in (b"", b"x" * 2049, "\xe4".encode()):
        with pytest.raises(Misbehaviour, match="field names"):
            field_names(payload)


def test_every_field_has_a_known_type():
    assert set(OUTPUT_TYPES.values()) | set(INPUT_TYPES.values()) <= set(FORMATS)
    for kind, form in FORMATS.items():
        assert len(struct.unpack(f">{form}", bytes(struct.calcsize(f">{form}")))) == COUNTS[kind]


def test_output_recipe_packs_in_the_order_asked_for():
    table = FieldTable(OUTPUT_TYPES)
    table.set("actual_q", *range(6))
    table.set("runtime_state", 2)
    table.set("output_int_register_47", -5)
    names = ["runtime_state", "actual_q", "output_int_register_47", "timestamp"]
    expected = struct.pack(">BI6did", 3, 2, *range(6), -5, 0.0)
    assert table.packer(names, 3)() == expected
    assert table.packer(["timestamp"], 1)() == bytes([1]) + bytes(8)
    assert table.reply(["actual_q", "nothing"]) == ["VECTOR6D", NOT_FOUND]


def test_field_takes_as_many_numbers_as_it_holds():
    table = FieldTable(OUTPUT_TYPES)
    with pytest.raises(ValueError, match="field actual_q: 5 numbers; valid are 6"):
        table.set("actual_q", *range(5))


def test_input_recipe_writes_all_or_nothing():
    inputs = Inputs()
    recipe = inputs.unpacker(["input_int_register_0", "input_double_register_24"])
    recipe(struct.pack(">Bid", 1, -7, 0.5))
    assert (inputs.get("input_int_register_0"), inputs.get("input_double_register_24")) == (-7, 0.5)
    with pytest.raises(Misbehaviour, match="a data package of 12 bytes for input recipe 1; valid is 13"):
        recipe(struct.pack(">Bid", 1, 9, 9.0)[:-1])
    assert inputs.get("input_int_register_0") == -7


def test_control_script_is_recognised():
    demand_control_script(SCRIPT.format(offset=0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("popup('hello')\n", "begins 'popup"),
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
        self.runs = 0

    def run(self):
        self.runs += 1


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

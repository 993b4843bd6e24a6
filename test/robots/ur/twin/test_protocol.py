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
from bid_ros.robots.ur.twin.primary import ScriptSession
from bid_ros.robots.ur.twin.rtde_server import ERROR, field_names, text_message
from bid_ros.robots.ur.twin.script_port import MAX_SCRIPT, Waypoint, parse_script
from bid_ros.sim.net import Misbehaviour

SCRIPT = """def rtde_control():
    global reg_offset_float = # float register offset
{offset}    global reg_offset_int = # int register offset
{offset}    global servo_gain = 300
    def exec_move_path():
        textmsg("exec_move_path")
        # inject move path
{path}    end
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
    names = ["runtime_state", "actual_q", "output_int_register_47", "actual_digital_output_bits"]
    expected = struct.pack(">BI6diQ", 3, 2, *range(6), -5, 0)
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


def test_masks_switch_single_outputs():
    inputs = Inputs()
    standard = inputs.unpacker(["standard_digital_output_mask", "standard_digital_output"])
    tool = inputs.unpacker(["tool_digital_output_mask", "tool_digital_output"])
    for recipe, mask, value in ((standard, 0b101, 0b111), (tool, 0b10, 0b10), (standard, 0b001, 0b000)):
        recipe(bytes([1, mask, value]))
    assert inputs.digital_outputs == 0b100 | 0b10 << 16


def test_types_of_analog_outputs_are_set_where_the_mask_is():
    inputs = Inputs()
    names = ["mask", "type", "0", "1"]
    recipe = inputs.unpacker([f"standard_analog_output_{name}" for name in names])
    for mask, types, expected in ((0b01, 0b11, 0b01), (0b10, 0b10, 0b11), (0b01, 0b00, 0b10)):
        recipe(struct.pack(">BBBdd", 1, mask, types, 0.5, 0.5))
        assert inputs.analog_output_types == expected


@pytest.mark.parametrize(("fraction", "expected"), [(0.3, 0.3), (7.0, 1.0), (-1.0, 0.0), (float("nan"), 0.0)])
def test_speed_slider_stays_between_0_and_1(fraction, expected):
    inputs = Inputs()
    recipe = inputs.unpacker(["speed_slider_mask", "speed_slider_fraction"])
    recipe(struct.pack(">BId", 1, 1, fraction))
    assert inputs.speed_slider == expected


def test_control_script_is_recognised_with_its_offset_and_path():
    path = "\tsignal_async_progress(0)\n\tmovej([0,-1.57,1e-05,-1.57,0,3],a=1.4,v=1.05,r=0)\n"
    path += "\tmovel(p[1,2,3,4,5,6],a=1,v=2,r=0.5)\n"
    script = parse_script(SCRIPT.format(offset=24, path=path))
    assert script.offset == 24
    assert script.path == (
        Waypoint(False, False, (0.0, -1.57, 1e-05, -1.57, 0.0, 3.0), 1.4, 1.05),
        Waypoint(True, True, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 1.0, 2.0),
    )
    assert parse_script(SCRIPT.format(offset=0, path="")).path == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("popup('hello')\n", "begins 'popup"),
        ("", "begins ''"),
        (SCRIPT.format(offset=7, path=""), "register offset 7; valid are 0 and 24"),
        (SCRIPT.format(offset=0, path="\tmovep(p[1,2,3,4,5,6],a=1,v=2,r=0)\n"), "a path with 'movep"),
        (SCRIPT.format(offset=0, path="\tmovej([1,2,3],a=1,v=2,r=0)\n"), "a path with 'movej"),
        (SCRIPT.format(offset=0, path="\tmovej([1.2.3,2,3,4,5,6],a=1,v=2,r=0)\n"), "a path with 'movej"),
        (SCRIPT.format(offset=0, path="\tmovej([0,0,0,0,0,0],a=1,v=2,r=0)\n" * 1001), "a path of 1001 waypoints"),
        (SCRIPT.format(offset=0, path="\tmovel(p[0,0,0,1e99,0,0],a=1,v=2,r=0)\n"), "valid are numbers up to"),
        (SCRIPT.format(offset=0, path=f"\tmovel(p[0,0,0,{'9' * 400},0,0],a=1,v=2,r=0)\n"), "valid are numbers up to"),
    ],
)
def test_other_programs_are_refused(text, message):
    with pytest.raises(Misbehaviour, match=message):
        parse_script(text)


class Runner:
    """Notes what it is to run."""

    def __init__(self, run):
        self.run = run


class Uploads(ScriptSession):
    name = "a client"

    def __init__(self, run):
        super().__init__(Runner(run))
        self.refused = []

    def refuse(self, reason):
        self.refused.append(reason)


def session(run=lambda script: None):
    uploads = Uploads(run)
    return uploads, uploads.refused


def test_script_runs_once_it_is_complete():
    run = []
    uploads, refused = session(run.append)
    text = SCRIPT.format(offset=0, path="").encode()
    for start in range(0, len(text), 7):
        assert not run
        uploads.received(text[start : start + 7])
    assert [script.offset for script in run] == [0]
    uploads.received(text + text)
    assert len(run) == 3 and not refused


def test_a_refusal_is_told_before_the_connection_ends():
    uploads, refused = session()
    with pytest.raises(Misbehaviour):
        uploads.received(b"popup('hello')\n")
    assert refused == ["a program that begins 'popup('hello')'; the twin runs ur_rtde's control script only"]


def test_script_without_an_end_is_dropped():
    uploads, _ = session()
    with pytest.raises(Misbehaviour, match="a client sent a script of over 1000000 bytes"):
        for _ in range(MAX_SCRIPT // 50_000 + 1):
            uploads.received(b"def x():\n" + b" " * 50_000)


def test_scripts_survive_mutation():
    generator = random.Random(8)
    path = "\tmovel(p[1,2,3,4,5,6],a=1,v=2,r=0.5)\n"
    text = SCRIPT.format(offset=0, path=path).encode()
    for _ in range(500):
        data = bytearray(text)
        for _ in range(generator.randrange(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            session()[0].received(bytes(data))
        except Misbehaviour as error:
            assert "valid" in str(error) or "the twin runs" in str(error)

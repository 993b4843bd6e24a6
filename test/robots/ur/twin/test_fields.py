"""Recipes of RTDE fields, without a socket."""

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
from bid_ros.sim.net import Misbehaviour


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

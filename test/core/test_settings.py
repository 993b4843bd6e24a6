"""Reading of configuration files: one sentence for each mistake, in a file and in Python alike."""

from __future__ import annotations

import copy
import pickle
import random
from dataclasses import FrozenInstanceError, replace
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field

from bid_ros.core.errors import ArmError, BidError
from bid_ros.core.schema import json_schema, with_twin
from bid_ros.core.settings import (
    AS_WRITTEN,
    BY_CALLER,
    Positive,
    Quaternion,
    Share,
    Vector3,
    load_settings,
    parse_settings,
    parse_with_twin,
    settings,
)


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("an even number")
    return value


@settings(error=ArmError)
class Wheel:
    """A wheel.

    Attributes:
        name: of the wheel.
        radius, width: m; grip: share of the best there is; 0: none, as on ice.
    """

    name: str
    radius: Positive = 0.1
    width: Annotated[float, Field(ge=0.01, le=0.5)] = 0.05
    grip: Share = 1.0


@settings(error=ArmError)
class CartConfig:
    """A cart.

    Moves on wheels.

    Attributes:
        address: of the cart.
        wheels: one or more; the
            first one steers.
        kind: ``small`` or large.
        place: m.

    Raises:
        ArmError: never mind.
    """

    address: Annotated[str, BY_CALLER]
    wheels: Annotated[tuple[Wheel, ...], Field(min_length=1)]
    twin: Annotated[bool, BY_CALLER] = False
    kind: Literal["small", "large"] = "small"
    place: Vector3 = (0.0, 0.0, 0.0)
    turn: Quaternion = (0.0, 0.0, 0.0, 1.0)
    ends: tuple[Annotated[float, Field(ge=0)], ...] = ()
    gears: Annotated[int, Field(ge=2, multiple_of=2)] = 2
    doors: Annotated[int, AfterValidator(_even)] = 0
    horn: Wheel | None = None
    rows: tuple[float, ...] | tuple[tuple[float, ...], ...] = ()
    rate: Annotated[float, Field(gt=0, lt=100), AS_WRITTEN] = 10.0
    names: dict[str, str] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind == "large" and len(self.wheels) < 2:
            raise ArmError("a large cart has two wheels or more")


FRONT = {"name": "front"}
BAD = [
    ({}, "the field 'wheels' is missing; valid are wheels, kind, place"),
    ({"wheels": []}, r"wheels is \[\]; valid is a list of 1 or more entries"),
    ({"wheels": {}}, "wheels is dict; valid is a list of 1 or more entries"),
    ({"wheels": [7]}, r"wheels\[0\] is 7; valid is a mapping of fields"),
    ({"wheels": [{}]}, r"wheels\[0\]: the field 'name' is missing; valid are name, radius, width, grip"),
    ({"wheels": [{**FRONT, "colour": 1}]}, r"wheels\[front\]: unknown field 'colour'; valid are name, radius"),
    ({"wheels": [{**FRONT, "radius": 0}]}, r"wheels\[front\]\.radius is 0; valid is a number above 0$"),
    ({"wheels": [{**FRONT, "radius": float("inf")}]}, r"wheels\[front\]\.radius is inf; valid is a number above 0"),
    (
        {"wheels": [{**FRONT, "width": float("nan")}]},
        r"wheels\[front\]\.width is nan; valid is a number",
    ),
    (
        {"wheels": [{**FRONT, "width": "0.1"}]},
        r"wheels\[front\]\.width is '0\.1'; valid is a number from 0\.01 to 0\.5",
    ),
    ({"wheels": [{**FRONT, "grip": 1.5}]}, r"wheels\[front\]\.grip is 1\.5; valid is a number above 0 and up to 1"),
    ({"wheels": [{"name": 3}]}, r"wheels\[0\]\.name is 3; valid is a text"),
    ({"kind": "tiny"}, "kind is 'tiny'; valid is one of small, large"),
    ({"kind": "large"}, "a large cart has two wheels or more"),
    ({"place": [1, 2]}, r"place is \[1, 2\]; valid is a list of 3 numbers"),
    ({"place": [1, 2, 3, 4]}, r"place is \[1, 2, 3, 4\]; valid is a list of 3 numbers"),
    ({"place": [1, None, 3]}, r"place\[1\] is None; valid is a number"),
    ({"place": {"x": 1}}, "place is dict; valid is a list of 3 numbers"),
    ({"turn": [1, 1, 0, 0]}, "turn is .1, 1, 0, 0.; valid is a unit quaternion xyzw"),
    ({"ends": [0, -1]}, r"ends\[1\] is -1; valid is a number, 0 or more"),
    ({"gears": 3}, "gears is 3; valid is a multiple of 2, 2 or more"),
    ({"gears": 2.5}, "gears is 2.5; valid is a multiple of 2"),
    ({"gears": True}, "gears is True; valid is a multiple of 2"),
    ({"doors": 3}, "doors is 3; valid is an even number"),
    ({"horn": {"name": "h", "width": 9}}, r"horn\.width is 9; valid is a number from 0\.01"),
    ({"horn": []}, r"horn is \[\]; valid is a mapping of fields"),
    ({"rows": [1, [2]]}, r"rows is \[1, \[2\]\]; valid is a list of numbers or a list of entries"),
    ({"rate": 100}, "rate is 100; valid is a number above 0 and below 100"),
    ({"names": {"a": 1}}, r"names\.a is 1; valid is a text"),
    ({"names": {3: 1}}, r"names\.3 is 1; valid is a text"),
    ({"wheels": [{"nmae": "front"}]}, r"wheels\[0\]: unknown field 'nmae'; valid are name"),
    ({7: 1}, "unknown field '7'; valid are wheels"),
    ({"kind": "x" * 500}, f"kind is '{'x' * 79}...; valid is one of"),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD, ids=lambda item: str(item)[:40])
def test_each_mistake_in_a_file_is_one_sentence(changes, sentence):
    content = {"wheels": [FRONT], **changes} if changes else {}
    with pytest.raises(ArmError, match=f"^cart file x: {sentence}") as caught:
        parse_with_twin(CartConfig, content, "cart file x", False, address="here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, 3, "text", [1]])
def test_a_file_that_holds_no_mapping_says_so(content):
    with pytest.raises(ArmError, match=r"cart file x: the content is .*; valid is a mapping of fields"):
        parse_with_twin(CartConfig, content, "cart file x", False, address="here")


@pytest.mark.parametrize(
    ("values", "named", "sentence"),
    [
        (("w", 0.0), {}, "^wheel: radius is 0.0; valid is a number above 0"),
        (("w",), {"width": 1}, "^wheel: width is 1; valid is a number from 0.01 to 0.5"),
        ((3,), {}, "^wheel: name is 3; valid is a text"),
        ((), {}, "^wheel: the field 'name' is missing"),
        (("w",), {"colour": "red"}, "^wheel: unknown field 'colour'; valid are name"),
    ],
)
def test_a_value_built_in_python_is_checked_alike(values, named, sentence):
    with pytest.raises(ArmError, match=sentence):
        Wheel(*values, **named)


def test_classes_are_called_by_what_they_are():
    with pytest.raises(ArmError, match=r"^cart: gears is 1"):
        CartConfig("here", (Wheel("front"),), gears=1)
    with pytest.raises(ArmError, match=r"^a large cart"):
        CartConfig("here", (Wheel("front"),), kind="large")
    with pytest.raises(ArmError, match=r"^wheel: grip is 2"):
        replace(Wheel("front"), grip=2)


def test_what_is_built_is_a_plain_frozen_dataclass():
    wheel = Wheel("front", 1)
    assert wheel == Wheel("front", radius=1.0) and type(wheel.radius) is float
    assert copy.deepcopy(wheel) == pickle.loads(pickle.dumps(wheel)) == wheel and hash(wheel)
    with pytest.raises(FrozenInstanceError):
        wheel.radius = 2.0


def test_numbers_come_through_unchanged():
    source = random.Random(3)
    for _ in range(2000):
        value = source.uniform(-1, 1) * 10 ** source.randint(-300, 300)
        assert parse_settings(CartConfig, {"wheels": [FRONT], "rows": [value], "address": "a"}, "x").rows == (value,)
    as_written = parse_settings(CartConfig, {"wheels": [FRONT], "rate": 10, "address": "a"}, "x").rate
    assert type(as_written) is int and type(CartConfig("a", (Wheel("w"),)).rate) is float


def cart(content, in_twin):
    return parse_with_twin(CartConfig, {"wheels": [FRONT], **content}, "x", in_twin, address="here", twin=in_twin)


def test_the_section_twin_replaces_fields_only_there():
    content = {"gears": 4, "kind": "small", "twin": {"gears": 6}}
    assert (cart(content, False).gears, cart(content, True).gears) == (4, 6)
    assert (cart(content, False).twin, cart(content, True).twin, cart(content, True).address) == (False, True, "here")


@pytest.mark.parametrize("in_twin", [False, True])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"gears": 1, "twin": {"gears": 6}}, "gears is 1"),
        ({"twin": {"gaers": 6}}, "unknown field 'gaers'"),
        ({"twin": {"gears": 1}}, "gears is 1"),
        ({"twin": [1]}, r"twin is \[1\]; valid is a mapping"),
        ({"twin": None}, "twin is None; valid is a mapping"),
        ({"twin": {"address": "there"}}, "unknown field 'address'; valid are wheels, kind"),
        ({"address": "there"}, "unknown field 'address'; valid are wheels, kind"),
        ({"twin": {"kind": "large"}}, "a large cart"),
    ],
)
def test_a_mistake_is_found_in_both_variants(content, sentence, in_twin):
    with pytest.raises(ArmError, match=f"^x: {sentence}"):
        cart(content, in_twin)


def test_a_missing_file_and_what_is_no_yaml_are_named(tmp_path):
    with pytest.raises(ArmError, match=r"^wheel file .*none\.yaml does not exist"):
        load_settings(Wheel, tmp_path / "none.yaml", "wheel file")
    file = tmp_path / "wheel.yaml"
    for text in ("name: [1", "a: b: c", "name: *nobody", "&a {name: *a}", "2024-01-01: 1", "\x00"):
        file.write_text(text)
        with pytest.raises(ArmError, match=r"^wheel file .*wheel\.yaml") as caught:
            load_settings(Wheel, file, "wheel file")
        assert "\n" not in str(caught.value)
    file.write_text("name: 2024-01-01")
    assert load_settings(Wheel, file, "wheel file").name == "2024-01-01"


def test_an_error_is_a_bid_error_unless_the_class_says_which():
    @settings
    class Plain:
        size: int = 1

    with pytest.raises(BidError, match=r"^plain: size is 'x'; valid is a whole number"):
        Plain("x")


def test_the_schema_says_types_ranges_defaults_and_what_the_docstring_says():
    schema = with_twin(json_schema(CartConfig))
    assert schema["description"] == "A cart." and schema["additionalProperties"] is False
    assert schema["required"] == ["wheels"] and "address" not in schema["properties"]
    assert schema["properties"]["wheels"]["description"] == "one or more; the first one steers."
    assert schema["properties"]["kind"] | {"title": ""} == {
        "type": "string",
        "enum": ["small", "large"],
        "default": "small",
        "description": "small or large.",
        "title": "",
    }
    assert schema["properties"]["place"]["minItems"] == schema["properties"]["place"]["maxItems"] == 3
    assert set(schema["properties"]["twin"]["properties"]) == set(schema["properties"]) - {"twin"}
    wheel = schema["$defs"]["Wheel"]["properties"]
    assert {name: field.get("description") for name, field in wheel.items()} == {
        "name": "of the wheel.",
        "radius": "m",
        "width": "m",
        "grip": "share of the best there is; 0: none, as on ice.",
    }
    assert (wheel["width"]["minimum"], wheel["width"]["maximum"], wheel["width"]["default"]) == (0.01, 0.5, 0.05)

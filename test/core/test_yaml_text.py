"""Values are written into a YAML text, and every other word stays."""

from __future__ import annotations

import pytest
import yaml

from bid_ros.core.yaml_text import flow_text, value_of, with_fields, with_item

TEXT = """# of all
box:      # mine
  low: [0.0, 1]   # m
  sizes:
    - 1   # one
    - 2
  # of the last
  last: {a: 1, b: x}   # both
places:
  - {name: table, offset: 0.0}   # flat
  - {name: bin}
none: []
"""


def at(text: str, *names: str):
    node = yaml.compose(text)
    for name in names:
        node = value_of(node, name)
    return node


def edited(text: str, new: str, removed: str, added: str):
    """Every line is the same but for one."""
    assert set(text.splitlines()) - set(new.splitlines()) == ({removed} if removed else set())
    assert set(new.splitlines()) - set(text.splitlines()) == {added}


@pytest.mark.parametrize(
    ("where", "fields", "removed", "added"),
    [
        (("box",), {"low": [2, 3]}, "  low: [0.0, 1]   # m", "  low: [2, 3]   # m"),
        (("box", "last"), {"b": "y"}, "  last: {a: 1, b: x}   # both", "  last: {a: 1, b: y}   # both"),
        (("box",), {"high": [4.0]}, "", "  high: [4.0]"),
        ((), {"start": {"low": 1}}, "", "start: {low: 1}"),
    ],
)
def test_only_the_value_changes(where, fields, removed, added):
    edited(TEXT, with_fields(TEXT, at(TEXT, *where), fields), removed, added)


def test_a_new_field_may_stand_before_another():
    lines = with_fields(TEXT, at(TEXT, "box"), {"new": 1}, before="last").splitlines()
    assert lines.index("  new: 1") < lines.index("  # of the last")


def test_a_mapping_in_braces_that_gets_a_field_becomes_lines_and_keeps_its_comment():
    new = with_fields(TEXT, at(TEXT, "box", "last"), {"c": 2})
    assert yaml.safe_load(new)["box"]["last"] == {"a": 1, "b": "x", "c": 2}
    assert "  last: # both" in new.splitlines()


@pytest.mark.parametrize(("name", "count"), [("places", 3), ("none", 1)])
def test_an_item_comes_to_the_end_of_a_list(name, count):
    new = with_item(TEXT, at(TEXT, name), {"name": "new"})
    found = yaml.safe_load(new)
    assert len(found[name]) == count and found[name][-1] == {"name": "new"}
    assert "# flat" in new and found["box"] == yaml.safe_load(TEXT)["box"]


def test_a_value_is_one_line():
    assert flow_text({"a": [1.0, 2.5], "b": None}) == "{a: [1.0, 2.5], b: null}"
    assert flow_text("x") == "x"


@pytest.mark.parametrize(
    "value", ["a\nb", "a\n", "\n", {"k\nk": ["x\r\ny", 1.5, True]}, "plain", "wide " * 99, "é\u2028"]
)
def test_a_value_is_one_line_whatever_is_in_it(value):
    text = flow_text(value)
    assert len(text.splitlines()) == 1 and yaml.safe_load(text) == value

"""A key that stands twice in a YAML file is refused, not answered by the last one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from bid_ros.cameras.config import load_cameras
from bid_ros.core.errors import BidError
from bid_ros.core.settings import load_yaml
from bid_ros.core.task import load_task
from bid_ros.core.unique_keys import RepeatedKeyError, UniqueKeyLoader
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.folder import find_system
from bid_ros.system.new import new_system
from bid_ros.system.parameters import load_parameters

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "key 'a' stands in line 1 and again in line 3; valid is once"),
        ("{a: 1, a: 1}", "key 'a' stands in line 1 and again in line 1; valid is once"),
        ("a:\n- b: 1\n- b: 1\n  c: {d: 1}\n  b: 2\n", "key 'b' stands in line 3 and again in line 5; valid is once"),
        ("yes: a\ntrue: b\n", "key 'True' stands in line 1 and again in line 2; valid is once"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_both_lines(text, said):
    with pytest.raises(RepeatedKeyError) as error:
        load_yaml(text)
    assert str(error.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\n",
        # The mapping in the middle is asked for twice: for itself, and by the one that it is merged into.
        "c: &c {x: 0}\nb: &b\n  <<: *c\n  x: 2\na:\n  <<: *b\n  x: 1\n",
        "a: 1\nb: {a: 1}\nc: [{a: 1}, {a: 1}]\n",
        "",
    ],
)
def test_what_yaml_allows_is_read_as_before(text):
    assert load_yaml(text) == yaml.safe_load(text)


def test_the_files_that_are_shipped_are_read_as_before():
    texts = [path.read_text() for folder in ("config", "models") for path in (ROOT / folder).rglob("*.yaml")]
    assert len(texts) > 20 and all(load_yaml(text) == yaml.safe_load(text) for text in texts)


def test_the_parser_is_still_the_one_of_libyaml():
    assert issubclass(UniqueKeyLoader, yaml.CSafeLoader)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("task.yaml", load_task),
        ("robot.yaml", lambda path: load_arm_config(path, "127.0.0.1", True, "franka")),
        ("cameras.yaml", lambda path: load_cameras(path, ["third_person", "wrist"], twin=True)),
        ("nodes.yaml", load_parameters),
        ("system.yaml", lambda path: find_system(path.parent)),
    ],
)
def test_every_file_of_a_system_is_refused_by_name(name, read, tmp_path):
    path = new_system(tmp_path / "mine", "franka").folder / name
    lines = path.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line[:1].isalpha())
    key = lines[first].split(":")[0]
    path.write_text("\n".join([*lines, f"{key}: 1"]) + "\n")
    with pytest.raises(BidError) as error:
        read(path)
    said = f"{path} is not valid YAML: key '{key}' stands in line {first + 1} and again in line {len(lines) + 1}"
    assert said in str(error.value)


def test_everything_is_read_by_the_one_loader():
    found = []
    for path in (ROOT / "bid_ros").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("load", "safe_load", "full_load", "load_all"):
                found += [str(path)] if isinstance(node.value, ast.Name) and node.value.id == "yaml" else []
    assert not found

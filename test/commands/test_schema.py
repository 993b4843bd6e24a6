"""``bid schema``: the shipped schemas are current, accept the shipped files and refuse what the package refuses."""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path

import pytest
import yaml

from bid_ros.cameras.config import CameraConfig
from bid_ros.cli import main
from bid_ros.commands.schema import schema_text
from bid_ros.core.errors import ArmError, BidError
from bid_ros.core.settings import parse_settings, parse_with_twin
from bid_ros.core.task import Task
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.ur.config import UrConfig
from bid_ros.system.folder import SystemSettings, shipped_systems
from bid_ros.system.parameters import NodesSettings

NAMES = ("arms", "board", "bundle", "cameras", "nodes", "robot-franka", "robot-ros", "robot-ur", "system", "task")
CONFIG = Path(__file__).parents[2] / "config"
FILES = ("cameras", "nodes", "robot", "system", "task")


@pytest.fixture
def schemas(root):
    return root / "config" / "schemas"


def test_the_shipped_schemas_are_what_the_command_writes(schemas):
    assert sorted(file.stem for file in schemas.iterdir()) == sorted(NAMES)
    for name in NAMES:
        assert (schemas / f"{name}.json").read_text() == schema_text(name), "run: bid schema --out config/schemas"


def references(node):
    """Yield every reference of a schema."""
    if isinstance(node, dict):
        yield from [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from references(inner)


def test_every_reference_leads_to_a_part_of_its_schema(schemas):
    found = {name: [*references(json.loads((schemas / f"{name}.json").read_text()))] for name in NAMES}
    assert found["task"] and found["cameras"]
    for name, paths in found.items():
        schema = json.loads((schemas / f"{name}.json").read_text())
        for path in paths:
            assert functools.reduce(operator.getitem, path.removeprefix("#/").split("/"), schema), (name, path)


def test_the_command_writes_one_schema_for_each_file_and_robot(tmp_path):
    assert main(["schema", "--out", str(tmp_path / "schemas")]) == 0
    assert set(NAMES) <= {file.stem for file in (tmp_path / "schemas").iterdir()}
    with pytest.raises(ArmError, match="robot 'kuka' does not exist"):
        schema_text("robot-kuka")


@pytest.fixture(
    params=[f"{system}/{file}" for system in shipped_systems() for file in FILES] + ["pusht"], scope="module"
)
def shipped(request):
    """A shipped file, what it holds, and the validator of the schema that its first line names."""
    file = CONFIG / f"{request.param}.yaml"
    first = file.read_text().splitlines()[0]
    key = "# yaml-language-server: $schema="
    assert first.startswith(key)
    schema = json.loads((file.parent / first.removeprefix(key)).read_text())
    return file, yaml.safe_load(file.read_text()), validator(schema)


def validator(schema):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_shipped_file_names_the_schema_that_it_keeps(shipped):
    file, content, checks = shipped
    kind = file.stem if file.stem in FILES else "task"
    assert checks.schema["title"].lower().startswith({"robot": file.parent.name.split("_")[0][:2]}.get(kind, kind)[:4])
    checks.validate(content)


@pytest.mark.parametrize("name", ["franka_place", "pusht", "ur5_pick"])
def test_every_shipped_bundle_keeps_its_schema(root, schemas, name):
    content = yaml.safe_load((root / "models" / name / "bundle.yaml").read_text())
    checked = validator(json.loads((schemas / "bundle.json").read_text()))
    checked.validate(content)
    space = {"action": [{"feature": "agent_position", "form": "quaternion_xyzw", "reference": "observed"}]}
    checked.validate({**content, "format": 2, "space": space})
    assert not checked.is_valid({**content, "format": 2, "space": {"action": [{"form": "roll"}]}})
    assert not checked.is_valid({**content, "space": {"colour": "red"}})


def read(file, content):
    """Read ``content`` as the package reads that file."""
    if file.stem == "cameras":
        for name, camera in content.items():
            parse_with_twin(CameraConfig, camera, "x", False, name=name)
    elif file.stem == "robot":
        kind = FrankaConfig if "franka" in str(file) else UrConfig
        parse_with_twin(kind, content, "x", False, address="here")
    else:
        parse_settings({"nodes": NodesSettings, "system": SystemSettings}.get(file.stem, Task), content, "x")


def places(node, trail=()):
    """Where there is a value; of the numbers in a list, which are all held to the same, the first."""
    if isinstance(node, list) and all(isinstance(value, int | float) for value in node):
        yield from ((*trail, key) for key in range(min(len(node), 1)))
    elif isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*trail, key)
            yield from places(value, (*trail, key))


@pytest.mark.parametrize("junk", [None, "some text", [], {"unknown": 1}, -1e9], ids=repr)
def test_what_the_schema_accepts_at_any_place_the_package_reads_or_refuses_in_a_sentence(shipped, junk):
    """And what the schema refuses is refused: an editor is never stricter than the package."""
    file, content, checks = shipped
    read_all, everywhere = 0, list(places(content))
    for *way, last in everywhere:
        node = functools.reduce(operator.getitem, way, content)
        before, node[last] = node[last], junk
        try:
            read(file, content)
        except BidError as error:
            assert "\n" not in str(error)
        else:
            # The reader of the file does not know the nodes' parameters, which the nodes themselves check.
            assert file.stem == "nodes" or checks.is_valid(content), (*way, last)
            read_all += 1
        finally:
            node[last] = before
    assert read_all < len(everywhere)

"""The layouts of RViz and Foxglove name what exists: topics, fields of messages, panels and displays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from rosbags.interfaces import Nodetype
from rosbags.typesys import get_types_from_msg

from bid_ros.core.task import load_task
from bid_ros.core.topics import MARKERS, OVERLAY, TOPICS, Topic
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.storage import BagFile
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.tasks.topics import system_topics
from bid_ros.views import overlay, scene

# Foxglove's own
PANELS = {"3D", "DiagnosticSummary", "Image", "Plot", "RawMessages", "RosOut", "StateTransitions", "Tab"}
DISPLAYS = {"Grid", "Image", "MarkerArray", "Pose", "RobotModel", "TF"}  # of rviz_default_plugins
PATH = re.compile(r"(/[\w/]+)((?:\.\w+(?:\[:\])?)*)")
SYSTEMS = [*shipped_systems(), "new/table"]


@pytest.fixture(params=SYSTEMS)
def folder(root, request):
    return root / "config" / request.param


@pytest.fixture
def layout(folder) -> dict[str, Any]:
    return json.loads((folder / "foxglove.json").read_text())


def topics(folder) -> dict[str, Topic]:
    """Full names of the topics of a system, and their types."""
    live = {MARKERS: Topic("visualization_msgs/msg/MarkerArray"), OVERLAY: Topic("sensor_msgs/msg/Image")}
    recorded = TOPICS if folder.name == "table" else system_topics(load_task(folder / "task.yaml"))
    return {f"/{name.lstrip('/')}": topic for name, topic in {**recorded, **live}.items()}


def paths(item: Any) -> Iterator[str]:
    """Every text of a layout that begins with a slash, and every name of an entry that does."""
    if isinstance(item, dict):
        yield from (key for key in item if key.startswith("/"))
        for value in item.values():
            yield from paths(value)
    elif isinstance(item, list):
        for value in item:
            yield from paths(value)
    elif isinstance(item, str) and item.startswith("/"):
        yield item


@cache
def fields_of(type_name: str) -> dict[str, dict[str, Any]]:
    """Fields by name of a type and of those in it, by type."""
    own, *others = find_definition(type_name).text.split("=" * 80 + "\n")
    texts = {type_name: own}
    for other in others:
        head, body = other.split("\n", 1)
        package, short = head.removeprefix("MSG: ").split("/")
        texts[f"{package}/msg/{short}"] = body
    return {kind: dict(get_types_from_msg(text, kind)[kind][1]) for kind, text in texts.items()}


def has_field(type_name: str, fields: list[str]) -> bool:
    kind: Any = type_name
    for field in fields:
        array = field.endswith("[:]")
        known = fields_of(type_name)[kind]
        if field.removesuffix("[:]") not in known:
            return False
        node, value = known[field.removesuffix("[:]")]
        if array != (node in (Nodetype.ARRAY, Nodetype.SEQUENCE)):
            return False
        kind = value[0][1] if array else value
    return True


def test_a_foxglove_layout_names_topics_and_fields_that_exist(folder, layout):
    known, found = topics(folder), set(paths(layout["configById"]))
    source = layout["userNodes"]["scene"]["sourceCode"]
    (output,) = re.findall(r'export const output = "(.*)"', source)
    assert output in found, "what the script draws is shown"
    found.remove(output)
    (inputs,) = re.findall(r"export const inputs = (\[.*\])", source)
    assert set(json.loads(inputs)) <= known.keys()
    for field in set(re.findall(r"\bsaid\.(\w+)", source)):
        assert has_field("bid_msgs/msg/Decision", [field]) or has_field("bid_msgs/msg/Decision", [f"{field}[:]"]), field
    assert {"/policy/decision.total[:]", "/safety/state.state", f"/{MARKERS}", "/diagnostics"} <= found
    for path in found:
        match = PATH.fullmatch(path)
        assert match and match[1] in known, path
        assert has_field(known[match[1]].type_name, match[2].split(".")[1:]), path


def test_the_script_of_a_foxglove_layout_has_the_numbers_of_its_task(folder, layout):
    task = load_task((folder if folder.name != "table" else folder.parent.parent / "franka_place") / "task.yaml")
    source = layout["userNodes"]["scene"]["sourceCode"]
    found = {name: json.loads(value) for name, value in re.findall(r"const (COLUMN|LOW|HIGH) = ([^;]+);", source)}
    position, limits = task.columns("position"), task.limits
    assert position is not None
    assert found == {"COLUMN": position.start, "LOW": [*limits.workspace_min], "HIGH": [*limits.workspace_max]}


def test_the_scripts_differ_in_these_numbers_alone(root):
    sources = [json.loads((root / "config" / name / "foxglove.json").read_text())["userNodes"] for name in SYSTEMS]
    assert len({re.sub(r"const (COLUMN|LOW|HIGH) = .*", "", source["scene"]["sourceCode"]) for source in sources}) == 1


def test_the_script_has_the_colours_of_the_scene(layout):
    numbers = re.findall(r"color\((\d+), (\d+), (\d+),", layout["userNodes"]["scene"]["sourceCode"])
    found = {tuple(map(int, part)) for part in numbers}
    assert found == {overlay.TRIMMED, overlay.WEAK, overlay.PREVIOUS, overlay.SELECTED, scene.FREE}
    steps = re.findall(r"(\d+) ([-+]) (\d+) \* worse", layout["userNodes"]["scene"]["sourceCode"])
    assert tuple(int(best) for best, _, _ in steps) == scene.BEST
    worst = tuple(int(best) + int(f"{sign}{step}") for best, sign, step in steps)
    assert worst == scene.WORST


def test_the_check_of_fields_can_fail():
    assert has_field("bid_msgs/msg/Decision", ["total[:]"]) and not has_field("bid_msgs/msg/Decision", ["total"])
    assert has_field("bid_msgs/msg/ArmStatus", ["tool", "position", "x"])
    assert not has_field("bid_msgs/msg/ArmStatus", ["tool", "position", "w"])


def test_a_foxglove_layout_shows_each_of_its_panels_once(layout):
    config = layout["configById"]
    assert {name.split("!")[0] for name in config} <= PANELS

    def leaves(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
            if node.startswith("Tab!"):
                for tab in config[node]["tabs"]:
                    yield from leaves(tab["layout"])
        else:
            assert node["direction"] in ("row", "column") and 0 < node["splitPercentage"] < 100
            yield from (leaf for part in ("first", "second") for leaf in leaves(node[part]))

    assert sorted(leaves(layout["layout"])) == sorted(config)


def test_an_rviz_layout_has_known_displays_and_every_part_of_the_scene(folder):
    content = yaml.safe_load((folder / "view.rviz").read_text())["Visualization Manager"]
    kinds = {item["Class"].removeprefix("rviz_default_plugins/") for item in content["Displays"]}
    assert kinds <= DISPLAYS and {"MarkerArray", "RobotModel", "Image"} <= kinds
    (markers,) = (item for item in content["Displays"] if item["Class"].endswith("MarkerArray"))
    assert markers["Topic"]["Value"] == MARKERS
    table = (line.split() for line in (scene.__doc__ or "").splitlines() if "  " in line)
    assert set(markers["Namespaces"]) == {words[0] for words in table} - {"part", "="}
    for item in content["Displays"]:
        if item["Class"].endswith("/Image"):  # RViz asks for reliable ones by default, and then gets none
            assert item["Topic"]["Reliability Policy"] == "Best Effort"
        for key, value in item.items():
            if key.endswith("Topic"):
                assert not value["Value"].startswith("/"), "a namespace moves only relative names"


def test_a_recording_has_schemas_that_foxglove_reads(root, tmp_path):
    """MCAP with ros2msg text and CDR messages is what Foxglove opens without a connection to ROS."""
    from mcap.reader import make_reader

    known = system_topics(find_system("franka_place").task)
    file = BagFile(tmp_path / "bag_0.mcap", "zstd")
    for name, topic in known.items():
        file.add_topic(f"/{name.lstrip('/')}", find_definition(topic.type_name), "")
    file.finish()
    with (tmp_path / "bag_0.mcap").open("rb") as stream:
        found = make_reader(stream).get_summary()
    assert found is not None and found.channels
    assert {channel.message_encoding for channel in found.channels.values()} == {"cdr"}
    assert {schema.encoding for schema in found.schemas.values()} == {"ros2msg"}
    assert {schema.name for schema in found.schemas.values()} == {topic.type_name for topic in known.values()}
    assert all(schema.data.strip() for schema in found.schemas.values())

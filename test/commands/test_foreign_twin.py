"""A bag of the ROS twin under a lab's own names: its rows are those of the bag that bid_ros recorded."""

from __future__ import annotations

import json
import logging
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import yaml
from foreign_arm import TASK as ARM_TASK
from foreign_arm import TOPICS, write_bag
from foreign_twin import PLACES, UNIT, write_twin_bag

from bid_ros.cli import main
from bid_ros.core.task import parse_task
from bid_ros.formats import load_dataset
from bid_ros.recording.dataset import Dataset

SAME_NS = 5_000_000  # between rows of the same pictures
TREE = "/tf[base, tool0]"


@pytest.fixture(scope="module")
def golden() -> Path:
    return Path(__file__).resolve().parents[1] / "golden" / "bags" / "ros_pick"


@pytest.fixture(scope="module")
def bag(tmp_path_factory, golden) -> Path:
    return write_twin_bag(tmp_path_factory.mktemp("lab") / "monday", golden)


@pytest.fixture
def content(root) -> dict:
    return yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text())


def foreign(content, unit=UNIT, **observed) -> dict:
    """The task with the places of the lab, some of them replaced."""
    topics = deepcopy(PLACES)
    topics["observation"].update(observed)
    return {**content, "data": {"topics": topics, "unit": unit}}


def same_rows(found: Dataset, own: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows of both that have the same pictures."""
    at = np.abs(found.stamps_ns[:, None] - own.stamps_ns).argmin(axis=1)
    rows = np.flatnonzero(np.abs(found.stamps_ns - own.stamps_ns[at]) < SAME_NS)
    return rows, at[rows]


@pytest.mark.parametrize("place", ["/lab/tcp", TREE])
def test_the_rows_are_those_of_the_bag_that_bid_ros_recorded(bag, golden, content, place):
    own = load_dataset(golden, parse_task(content))
    found = load_dataset(bag, parse_task(foreign(content, tool_position=place, tool_rotation=place)))
    assert found.episodes == own.episodes == 1 and abs(found.rows - own.rows) <= 2
    rows, at = same_rows(found, own)
    assert len(rows) > 0.9 * own.rows
    for name in ("third_person", "wrist"):
        assert (found.observations[name][rows] == own.observations[name][at]).all()
    # A sample is the nearest one, up to 20 ms away, of an arm at 0.35 m/s.
    off = {name: np.abs(found.observations[name][rows] - own.observations[name][at]) for name in found.observations}
    assert off["tool_position"].max() < 0.008 and np.median(off["tool_position"]) < 5e-5
    assert off["tool_rotation"].max() < 2e-4
    assert off["gripper_width"].max() < 0.002 and np.median(off["gripper_width"]) < 1e-6
    apart = np.abs(found.actions[rows] - own.actions[at])
    assert apart[:, :3].max() < 0.002 and apart[:, 3:].max() < 1e-4


def test_a_joint_of_a_gripper_without_a_unit_is_said(bag, content, caplog):
    with caplog.at_level(logging.WARNING):
        load_dataset(bag, parse_task(foreign(content, unit={})))
    (said,) = [text for text in caplog.messages if "'gripper_width' reaches" in text]
    assert "or {gripper_width: 0 to 0.8}, what it is open and closed" in said


BAD = {
    "no frames": ("/tf", "/tf holds transforms, for 'tool_position' of kind position; valid are the position or rot"),
    "one": ("/tf[tool0]", "such as /tf[base_link, tool0]"),
    "unknown": ("/tf[base, hand]", "there is no frame 'hand'; the bag has arm, base, flange, foot, tool0"),
}


@pytest.mark.parametrize("case", BAD)
def test_frames_that_a_bag_does_not_tell_are_one_sentence(bag, content, case, tmp_path, capsys):
    place, said = BAD[case]
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(foreign(content, tool_position=place)))
    assert main(["data", "info", str(bag), "--task", str(file)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_what_is_read_of_a_tree_is_named(bag, content, tmp_path, capsys):
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(foreign(content, tool_position=TREE, tool_rotation=TREE)))
    assert main(["data", "info", str(bag), "--task", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["left"] == ["the task file names no /lab/tcp"] and 0 < told["latency_ms"]["tool_position"] < 100


def test_a_foreign_bag_becomes_bags_of_bid_ros_with_the_same_rows(bag, content, tmp_path, capsys):
    file, made = tmp_path / "task.yaml", tmp_path / "made"
    file.write_text(yaml.safe_dump(foreign(content)))
    words = ["--to", "bag", "--task", str(file), "--verify"]
    assert main(["data", "convert", str(bag), str(made), *words]) == 0
    assert "1 of 1 episodes read again and equal" in capsys.readouterr().err
    found, again = (load_dataset(path, parse_task(foreign(content))) for path in (bag, made))
    assert (found.stamps_ns == again.stamps_ns).all() and np.abs(found.actions - again.actions).max() < 1e-9
    opening = found.observations["gripper_width"]
    assert np.abs(opening - again.observations["gripper_width"]).max() < 1e-9, "the unit is that of foreign bags"


def test_joints_of_a_foreign_bag_cannot_be_bags_of_bid_ros_and_that_is_one_sentence(tmp_path, capsys):
    joints = {"name": "arm", "kind": "joints", "shape": [3], "names": ["base", "elbow", "wrist"]}
    seen_and_done = {"observation": [ARM_TASK["observation"][0], joints], "action": [{**joints, "name": "goal"}]}
    observed = {"wrist": "/cam_left/image_raw", "arm": "/my_arm/joint_states"}
    topics = {**TOPICS, "observation": observed, "action": {"goal": "/my_arm/goal"}}
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump({**ARM_TASK, **seen_and_done, "data": {"topics": topics}}))
    source = write_bag(tmp_path / "bag")
    assert main(["data", "convert", str(source), str(tmp_path / "made"), "--to", "bag", "--task", str(file)]) == 2
    error = capsys.readouterr().err
    assert error == "error: task 'foreign' commands joints; valid for a bag is one that commands a pose\n"
    assert not (tmp_path / "made").exists()

"""The nodes of a replay, and what keeps them away from a live system."""

from __future__ import annotations

import json
import shlex

import pytest
from recording.conftest import kit, make_run  # noqa: F401

from bid_ros.core.errors import BidError
from bid_ros.system.description import command_line
from bid_ros.system.folder import find_system
from bid_ros.system.replay_nodes import ReplayArguments, describe_replay
from bid_ros.system.run import RunArguments, parse_arguments
from bid_ros.system.rviz import rviz_arguments


@pytest.fixture
def bag(make_run, tmp_path):  # noqa: F811
    return str(make_run().write(tmp_path / "bag", "/left", {"namespace": "/left", "frame_prefix": "left/"}))


@pytest.fixture
def described(bag):
    """Return the nodes of a replay by name."""
    return lambda **given: {
        spec.name: spec for spec in describe_replay(find_system("franka_place"), ReplayArguments(bag=bag, **given))
    }


def test_the_nodes_take_messages_of_the_recorded_robot_in_a_namespace_of_their_own(described, bag, tmp_path):
    specs = described()
    assert list(specs) == ["policy", "replay"]
    for spec in specs.values():
        assert spec.namespace == "/replay" and spec.parameters["frame_prefix"] == "left/"
        words = shlex.split(command_line(spec, tmp_path))
        assert "__ns:=/replay" in words and {"/clock:=clock", "/tf:=tf", "/tf_static:=tf_static"} < set(words)
    assert specs["policy"].parameters["use_sim_time"] and "budget_ms" not in specs["policy"].parameters
    assert specs["replay"].parameters["bag"] == bag


def test_only_what_is_given_replaces_what_was_recorded(described):
    assert described()["policy"].parameters["changed"] == [""]
    given = described(decoder="ema", seed=3)["policy"].parameters
    assert given["changed"] == ["decoder", "seed"] and (given["decoder"], given["seed"]) == ("ema", 3)


def test_recorder_and_monitor_come_if_asked_for(described):
    specs = described(record=True, rviz=True)
    assert {"recorder", "monitor"} < set(specs) and specs["recorder"].parameters["use_sim_time"]


def test_rviz_shows_the_frames_and_the_topics_of_the_replay(described):
    words = rviz_arguments(find_system("franka_place"), RunArguments(namespace="/replay"), described()["policy"])
    assert words[words.index("-f") + 1] == "left/base", "the recorded prefix, not that of the namespace"
    assert {"__ns:=/replay", "/tf:=tf", "/tf_static:=tf_static"} < set(words)


@pytest.mark.parametrize("twin", [True, False])
def test_cameras_and_joints_are_those_of_what_was_recorded(make_run, root, tmp_path, twin):  # noqa: F811
    path = make_run().write(tmp_path / "bag", "", {"hardware": json.dumps({"twin": twin})})
    system = find_system(root / "config" / "joints" / "franka_place")
    specs = {spec.name: spec for spec in describe_replay(system, ReplayArguments(bag=str(path), rviz=True))}
    assert specs["monitor"].parameters["twin"] is twin and specs["policy"].parameters["twin"] is twin


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"namespace": "/"}, "namespace is the root, where live systems are"),
        ({"speed": "-1"}, "speed is -1.0; valid is 0.0 to 100.0"),
        ({"sped": "1"}, "argument 'sped' does not exist; valid are bag, remap"),
    ],
)
def test_what_is_not_valid_is_refused(texts, sentence):
    with pytest.raises(BidError, match=sentence):
        parse_arguments(texts, ReplayArguments)


def test_a_remapping_of_another_form_and_a_missing_bag_are_refused(described, tmp_path):
    with pytest.raises(BidError, match="remapping 'a=b' has an unknown form"):
        described(remap=("a=b",))
    with pytest.raises(BidError, match="missing"):
        describe_replay(find_system("franka_place"), ReplayArguments(bag=str(tmp_path / "missing")))
    with pytest.raises(BidError, match="a replay needs a bag, and none is named; valid is its folder or file"):
        describe_replay(find_system("franka_place"), ReplayArguments())

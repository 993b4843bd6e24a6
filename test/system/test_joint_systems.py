"""The shipped systems that command joints: their files, their nodes, and the task of their policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bid_ros.core.errors import BidError
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments

ROBOTS = {"franka_place": 7, "ur5_pick": 6}
POSES = {"ur5_pick": "config/ur5_pick/task.yaml"}  # whose policy predicts poses


@pytest.fixture(params=ROBOTS)
def system(request, root):
    return find_system(root / "config" / "joints" / request.param)


def test_every_file_is_valid_and_the_joints_are_those_of_the_robot(system):
    system.check(twin=True)
    columns = system.task.columns("joints")
    assert columns.stop - columns.start == ROBOTS[system.folder.name]


def test_the_policy_is_of_joints_or_that_of_the_system_with_poses(system, root):
    own = find_system(root / "config" / system.folder.name)
    poses = system.folder.name in POSES
    assert system.policy_task.signature() == (own if poses else system).task.signature()
    assert own.policy_task is own.task


def test_who_needs_the_robot_s_joints_gets_its_configuration(system):
    nodes = {spec.name: spec.parameters for spec in describe(system, RunArguments(out="out"))}
    for name in ("safety", "arm", "policy", "episode"):
        assert nodes[name]["arm_config"] == str(system.file("robot.yaml")) and nodes[name]["twin"] is True, name
    assert nodes["policy"].get("bundle_task", "").endswith(POSES.get(system.folder.name, ""))
    assert "bundle_task" not in nodes["episode"]


def test_a_system_of_poses_gives_none_of_it(root):
    nodes = {spec.name: spec.parameters for spec in describe(find_system("franka_place"), RunArguments(out="out"))}
    assert "arm_config" not in nodes["safety"] and "bundle_task" not in nodes["policy"]


def test_a_bundle_task_that_does_not_fit_is_one_sentence(system):
    policy = replace(system.settings.policy, bundle_task="task.yaml")
    wrong = replace(system, settings=replace(system.settings, policy=policy))
    with pytest.raises(BidError, match="valid is the tool's pose for a system that commands joints"):
        _ = wrong.policy_task
    policy = replace(policy, bundle_task="nowhere.yaml")
    with pytest.raises(BidError, match=r"has no file nowhere\.yaml"):
        _ = replace(system, settings=replace(system.settings, policy=policy)).policy_task

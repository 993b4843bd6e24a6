"""The examples of other arms can be read, for the robot and for its twin."""

import pytest

from bid_ros.core.paths import share
from bid_ros.robots.registry import load_arm_config

EXAMPLES = sorted(share("config", "new", "ros", "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("twin", [False, True])
def test_an_example_is_a_robot_file_that_says_it_never_ran(path, twin):
    config = load_arm_config(path, "the robot", twin, "ros")
    assert config.by_joints and config.controller in config.command_topic
    assert "never run on the robot" in path.read_text()


def test_there_are_four():
    assert [path.stem for path in EXAMPLES] == ["kinova_gen3", "so101", "ur5e", "xarm6"]

"""A gripper behind an action or a topic."""

import time

import pytest
from memory_bus import MemoryBus, joint_state

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Channel
from bid_ros.robots.ros.config import RosGripperConfig
from bid_ros.robots.ros.gripper import RosGripper
from bid_ros.robots.ros.joints import JointReader

GRIPPER = RosGripperConfig("grip", "knuckle", open_position=0.0, closed_position=0.8, open_width=0.1, max_effort=20.0)


@pytest.fixture
def bus():
    return MemoryBus()


def gripper(bus, interface):
    reader = JointReader(bus, "joint_states")
    reader.begin()
    bus.publish("joint_states", joint_state(time.time(), {"knuckle": 0.2}))
    config = RosGripperConfig(**{**vars(GRIPPER), "interface": interface})
    made = RosGripper(config, bus, reader, "arm")
    made.begin()
    return made


@pytest.mark.parametrize(
    ("interface", "goal"),
    [
        ("action", {"command": {"position": 0.8, "max_effort": 20.0}}),
        ("parallel_action", {"command": {"name": ["knuckle"], "position": [0.8], "effort": [20.0]}}),
    ],
)
def test_a_gripper_behind_an_action_ends_with_its_goal(bus, interface, goal):
    made = gripper(bus, interface)
    assert made.width() == pytest.approx(0.075)
    bus.serve(Channel("grip", ""))
    running = made.begin_close()
    (taken,) = bus.goals("grip")
    assert not running()
    taken.finish({})
    assert running()
    made.begin_open()
    made.begin_close()
    assert [item.message.command.position for item in bus.goals("grip")] in ([0.0, 0.8], [[0.0], [0.8]])
    assert taken.message.command.position == goal["command"]["position"]


def test_a_gripper_behind_a_topic_ends_when_it_stands(bus):
    made = gripper(bus, "topic")
    running = made.begin_open()
    assert bus.sent["grip"] == [{"data": [0.0]}]
    assert not running()
    bus.publish("joint_states", joint_state(time.time(), {"knuckle": 0.0}))
    assert not running()
    assert made.width() == pytest.approx(0.1)
    end = time.monotonic() + 2.0
    while not running():
        assert time.monotonic() < end


def test_a_gripper_that_nobody_serves_is_one_sentence(bus):
    made = gripper(bus, "action")
    bus.offered.clear()
    with pytest.raises(ArmError, match="robot at arm: nobody takes commands on /grip: start its gripper"):
        made.begin_open()

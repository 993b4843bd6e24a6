"""The parts of the driver that need no robot: whose controller is active, poses, twists, grippers."""

import math
import time

import numpy as np
import pytest
from memory_bus import MemoryBus, joint_state

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector, quaternion_from_matrix
from bid_ros.robots.bus import Channel
from bid_ros.robots.ros.activity import Activity
from bid_ros.robots.ros.config import RosConfig, RosGripperConfig
from bid_ros.robots.ros.gripper import RosGripper
from bid_ros.robots.ros.joints import JointReader
from bid_ros.robots.ros.tool_stream import tool_follower

GRIPPER = RosGripperConfig("grip", "knuckle", open_position=0.0, closed_position=0.8, open_width=0.1, max_effort=20.0)


@pytest.fixture
def bus():
    return MemoryBus()


def states(**labels):
    return {"controllers": [{"name": name, "state": {"label": label}} for name, label in labels.items()]}


def test_a_controller_that_is_not_active_is_named_with_what_to_do(bus):
    activity = Activity(bus, "activity", "arm")
    activity.begin()
    assert "nothing came on /activity, which tells whether controller 'arm' is active" in activity.problem()
    bus.publish("activity", states(joint_state_broadcaster="active"))
    assert "has no controller 'arm'; valid are joint_state_broadcaster" in activity.problem()
    bus.publish("activity", states(joint_state_broadcaster="active", arm="inactive", other="active"))
    advice = "activate it with: ros2 control switch_controllers --activate arm"
    assert activity.problem() == f"controller 'arm' is inactive, active are joint_state_broadcaster, other; {advice}"
    bus.publish("activity", states(arm="unconfigured"))
    assert activity.problem() == f"controller 'arm' is unconfigured, active are none; {advice}"
    bus.publish("activity", states(arm="active"))
    assert activity.problem() == ""


def test_nobody_is_asked_for_a_driver_without_controllers(bus):
    activity = Activity(bus, "activity", "")
    activity.begin()
    assert activity.problem() == "" and not bus.listened


def follower(bus, command):
    config = RosConfig("arm", ("a",), command=command, command_topic="goal", base_link="base", pose_gain=2.0)
    measured = np.array([0.1, 0.0, 0.3]), np.eye(3)
    return tool_follower(config, bus, lambda: measured)


def setpoint():
    turn = quaternion_from_matrix(matrix_from_vector(np.array([0.0, 0.0, 0.2])))
    return Setpoint(np.array([0.15, 0.0, 0.3]), turn, np.array([0.0, 0.1, 0.0]), np.array([0.0, 0.0, 0.5]))


def test_poses_are_passed_on_and_a_stop_asks_for_the_newest_one_again(bus):
    made = follower(bus, "pose")
    assert bus.offered["goal"].type_name == "geometry_msgs/msg/PoseStamped"
    made.command(setpoint())
    values = bus.sent["goal"][-1]
    assert values["header"]["frame_id"] == "base" and values["pose"]["position"] == {"x": 0.15, "y": 0.0, "z": 0.3}
    assert values["pose"]["orientation"]["z"] == pytest.approx(math.sin(0.1))
    assert made.brake() == 0.0
    assert len(bus.sent["goal"]) == 2 and bus.sent["goal"][-1]["pose"] == values["pose"]


def test_poses_begin_at_the_measured_one_and_never_at_one_that_is_not_finite(bus):
    config = RosConfig("arm", ("a",), command="pose", command_topic="goal")
    measured = np.array([0.1, 0.0, 0.3])
    made = tool_follower(config, bus, lambda: (measured, np.eye(3)))
    made.brake()
    assert "goal" not in bus.sent
    made.begin(np.zeros(1))
    measured[0] = math.nan
    made.brake()
    assert [sent["pose"]["position"]["x"] for sent in bus.sent["goal"]] == [0.1, 0.1]
    with pytest.raises(ArmError, match=r"the tool is measured at \[nan, 0.0, 0.3\] m; valid are finite numbers"):
        made.begin(np.zeros(1))


def test_twists_make_up_for_a_wrong_pose_and_a_stop_is_zero(bus):
    made = follower(bus, "twist")
    made.begin(np.zeros(1))
    assert set(bus.sent["goal"][-1]["twist"]["linear"].values()) == {0.0}
    made.command(setpoint())
    twist = bus.sent["goal"][-1]["twist"]
    assert list(twist["linear"].values()) == pytest.approx([0.1, 0.1, 0.0])
    assert list(twist["angular"].values()) == pytest.approx([0.0, 0.0, 0.9])
    made.brake()
    assert set(bus.sent["goal"][-1]["twist"]["angular"].values()) == {0.0}


def test_a_tool_that_is_late_by_its_lag_is_not_pushed(bus):
    """It moves with the set-points, 50 ms behind them."""
    speed, lag_s, begin = np.array([0.2, 0.0, 0.0]), 0.05, time.monotonic()
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=10.0, twist_lag_s=lag_s)

    def places():
        return max(time.monotonic() - begin - lag_s, 0.0) * speed, np.eye(3)

    made = tool_follower(config, bus, places)
    made.begin(np.zeros(1))
    while (passed := time.monotonic() - begin) < 0.2:
        moving = speed if passed > 0 else np.zeros(3)
        made.command(Setpoint(passed * speed, np.array([0.0, 0.0, 0.0, 1.0]), moving, np.zeros(3)))
        time.sleep(0.005)
    asked = [sent["twist"]["linear"]["x"] for sent in bus.sent["goal"][1:]]
    assert np.median(asked) == pytest.approx(0.2, abs=0.02), "against the newest set-point it would be 0.3"


def test_after_a_pause_the_tool_is_not_taken_to_have_gone_on(bus):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=10.0, twist_lag_s=0.02)
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    fast = Setpoint(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.array([9.0, 0.0, 0.0]), np.zeros(3))
    made.command(fast)
    time.sleep(0.05)
    made.command(fast)
    assert bus.sent["goal"][-1]["twist"]["linear"]["x"] == pytest.approx(9.0)


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
    assert not running(0.01)
    taken.finish({})
    assert running(0.01)
    made.begin_open()
    made.begin_close()
    assert [item.message.command.position for item in bus.goals("grip")] in ([0.0, 0.8], [[0.0], [0.8]])
    assert taken.message.command.position == goal["command"]["position"]


def test_a_gripper_behind_a_topic_ends_when_it_stands(bus):
    made = gripper(bus, "topic")
    running = made.begin_open()
    assert bus.sent["grip"] == [{"data": [0.0]}]
    assert not running(0.02)
    bus.publish("joint_states", joint_state(time.time(), {"knuckle": 0.0}))
    assert not running(0.02)
    assert made.width() == pytest.approx(0.1)
    assert running(2.0)


def test_a_gripper_that_nobody_serves_is_one_sentence(bus):
    made = gripper(bus, "action")
    bus.offered.clear()
    with pytest.raises(ArmError, match="robot at arm: nobody takes commands on /grip: start its gripper"):
        made.begin_open()


def test_a_gripper_between_two_equal_positions_is_refused():
    with pytest.raises(ArmError, match=r"open_position and closed_position are both 0\.3"):
        RosGripperConfig("g", "j", open_position=0.3, closed_position=0.3, open_width=0.1)

"""Poses and twists to a Cartesian controller."""

import math
import time

import numpy as np
import pytest
from memory_bus import MemoryBus

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector, quaternion_from_matrix
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.tool_stream import tool_follower


@pytest.fixture
def bus():
    return MemoryBus()


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


def at(place, turn_z=0.0):
    """A set-point at rest."""
    turn = quaternion_from_matrix(matrix_from_vector(np.array([0.0, 0.0, turn_z])))
    return Setpoint(np.array([place, 0.0, 0.0]), turn, np.zeros(3), np.zeros(3))


def test_a_tool_that_does_not_come_is_not_asked_to_go_faster_and_faster(bus):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=4.0)
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    for place, turn in ((0.04, 0.0), (0.1, 0.0), (0.19, 0.4)):
        made.command(at(place, turn))
    twists = [sent["twist"] for sent in bus.sent["goal"][1:]]
    assert [twist["linear"]["x"] for twist in twists] == pytest.approx([0.16, 0.2, 0.2])
    assert twists[-1]["angular"]["z"] == pytest.approx(0.8)


@pytest.mark.parametrize(("place", "turn", "said"), [(0.21, 0.0, "210 mm and 0.00 rad"), (0.0, 0.6, "0 mm and 0.60")])
def test_a_tool_that_jumps_away_from_its_set_points_is_refused(bus, place, turn, said):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal")
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    with pytest.raises(ArmError, match=f"the tool is measured {said}.* from where it was sent; valid is up to 200 mm"):
        made.command(at(place, turn))
    assert len(bus.sent["goal"]) == 1

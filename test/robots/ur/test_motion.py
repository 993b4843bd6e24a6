"""How a UR arm moves and stops: its states, its refusals, its limits. In lockstep.

``test_driver.py`` has what needs a Dashboard, a gripper or a process.
"""

import time

import numpy as np
import pytest
from robots.ur_sweep import PERIOD_S, STATE_TIMEOUT_S, at_rest, stream, ur, wait_until

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.ur.twin.machine import RuntimeState
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

ZERO = np.zeros(3)


@pytest.fixture
def arm(robot):
    built = ur(robot.address)
    built.connect()
    yield built
    built.close()


def test_a_protective_stop_in_motion_is_reported_latched_and_released_by_a_person(arm, robot):
    arm.start()
    stream(arm, [0.0, 0.1, 0.0], 0.4)
    robot.machine.protective_stop("test")
    with pytest.raises(ArmError, match=r"robot at 127.0.0.1 made a protective stop: look at what it met"):
        stream(arm, [0.0, 0.1, 0.0], 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")
    # For as long as nobody recovers it: the robot still speaks, and nothing that was sent is waited for.
    end = arm.state().stamp_ns + int(3e9 * STATE_TIMEOUT_S)
    wait_until(lambda: arm.state().stamp_ns > end, 3.0, "newer states, as the robot still speaks")
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    assert "protective stop" in arm.state().fault
    arm.recover()
    arm.start()
    stream(arm, [0.0, -0.05, 0.0], 0.2)
    assert arm.state().in_control


def test_a_power_off_in_motion_is_a_fault(arm, robot):
    arm.start()
    stream(arm, [0.0, 0.1, 0.0], 0.4)
    robot.machine.power_off()
    with pytest.raises(ArmError, match="is powered off: switch it on and release its brakes"):
        stream(arm, [0.0, 0.1, 0.0], 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")


def test_a_program_that_somebody_stops_is_a_fault(arm, robot):
    arm.start()
    stream(arm, [0.0, 0.1, 0.0], 0.4)
    robot.machine.end_program("somebody stopped it")
    with pytest.raises(ArmError, match="stopped our program: look at the pendant"):
        stream(arm, [0.0, 0.1, 0.0], 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")
    arm.recover()
    arm.start()


@pytest.mark.parametrize("direction", [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
def test_a_path_out_of_reach_is_refused_in_time_and_the_arm_comes_to_rest(arm, robot, direction):
    """Outwards and upwards to where the elbow is straight, inwards to where the base would have to turn at once."""
    arm.start()
    with pytest.raises(ArmError, match=r"rad/s of joint .*, near a singular posture") as caught:
        stream(arm, 0.3 * np.array(direction), 4.0)
    assert_refused(arm, robot, str(caught.value))
    arm.recover()
    arm.start()
    stream(arm, -0.1 * np.array(direction), 0.3)
    assert arm.state().in_control


def test_a_pose_without_inverse_kinematics_solution_is_refused_and_the_arm_comes_to_rest(arm, robot):
    arm.start()
    stream(arm, [0.0, 0.2, 0.0], 0.4)
    state = arm.state()
    with pytest.raises(ArmError, match=r"a set-point at \[.*\] m has no inverse kinematics solution") as caught:
        arm.command(Setpoint(3.0 * state.tool_position, state.tool_quaternion, ZERO, ZERO))
    assert_refused(arm, robot, str(caught.value))


def assert_refused(arm, robot, reason):
    refused = time.monotonic()
    assert arm.state().fault == reason
    assert not arm.state().in_control
    wait_until(lambda: at_rest(arm), 0.5 - (time.monotonic() - refused), "rest")
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    assert robot.machine.runtime is RuntimeState.PLAYING, "the controller had nothing to stop"


@pytest.mark.parametrize("quaternion", [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
def test_a_quaternion_that_is_no_rotation_is_refused(arm, quaternion):
    arm.start()
    with pytest.raises(ArmError, match=r"quaternion has the length \d\.\d+; valid is 1"):
        arm.command(Setpoint(arm.state().tool_position, np.array(quaternion), ZERO, ZERO))


def test_a_set_point_far_away_is_approached_within_the_limits(robot):
    arm = ur(robot.address, max_speed=0.2, max_acceleration=1.0)
    arm.connect()
    arm.move_to_joints(INITIAL_Q, Dynamics(1.0, 1.0, 1.0))
    arm.start()
    state = arm.state()
    goal = Setpoint(state.tool_position + np.array([0.0, 0.1, 0.0]), state.tool_quaternion, ZERO, ZERO)
    rows = []
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        arm.command(goal)
        state = arm.state()
        if not rows or state.stamp_ns != rows[-1][0]:
            rows.append((state.stamp_ns, *state.tool_position))
        time.sleep(PERIOD_S)
    arm.close()
    times, places = np.array(rows)[:, 0] / 1e9, np.array(rows)[:, 1:]
    speeds = np.linalg.norm(np.diff(places[::5], axis=0), axis=1) / np.diff(times[::5])
    assert 0.1 < speeds.max() < 0.24
    assert places[-1] == pytest.approx(goal.position, abs=1e-3)


def test_a_held_pose_needs_no_set_points(arm):
    arm.start()
    before = arm.state().tool_position
    arm.command(Setpoint(before, arm.state().tool_quaternion, ZERO, ZERO))
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        assert arm.state().in_control, arm.state().fault
        time.sleep(0.01)
    assert arm.state().tool_position == pytest.approx(before, abs=1e-4)

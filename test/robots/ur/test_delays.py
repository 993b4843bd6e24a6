"""Whatever is late or missing on the way to a UR and back, it comes to rest within 500 ms and says why. In lockstep.

``test_network.py`` has what only sockets show.
"""

import re
import time

import numpy as np
import pytest
from robots.tcp_proxy import CONNECTION_LOST, DOWN, UP
from robots.ur_sweep import OPTIONS, PERIOD_S, REST_S, Sweep, assert_at_rest_since, assert_recovers, moved

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

LOST = (*CONNECTION_LOST, "refuses")


@pytest.fixture
def arm(robot):
    built = build_arm("ur", UrConfig(robot.address, **OPTIONS))
    built.connect()
    yield built
    built.close()


def check(arm, robot, harm, reason):
    sweep = Sweep(arm)
    sweep.run(0.5)
    event, connections = time.monotonic_ns(), robot.connections
    harm()
    refused = sweep.until_refused(1.0)
    fault = arm.state().fault
    assert refused == fault
    assert robot.address in fault
    assert any(word in fault for word in reason), fault
    assert "\n" not in fault
    assert not arm.state().in_control
    assert np.abs(arm.state().joint_positions - INITIAL_Q).max() < 1.0, "no damaged state is handed on"
    assert_at_rest_since(robot, event)
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    assert robot.connections == connections, "only a person may ask for a new connection"
    assert_recovers(arm, robot)


@pytest.mark.parametrize(
    ("directions", "what"),
    [
        ((UP,), "hears us"),
        ((DOWN,), "is heard"),
        pytest.param((UP, DOWN), "(is heard|hears us)", marks=pytest.mark.long),
    ],
)
def test_a_delay_that_grows_slowly(arm, robot, directions, what):
    """No gap is ever long; only the times that states carry, and set-points that are reported back, show it."""
    sweep = Sweep(arm)
    sweep.run(0.3)
    begin = time.monotonic()

    def grow():
        while (late := 0.1 * (time.monotonic() - begin)) < 0.5:
            for direction in directions:
                robot.delay(direction, late)
            sweep.step()

    with pytest.raises(ArmError, match=rf"{what} 0\.2\d s late: it is a twin, so find what keeps"):
        grow()
    assert_at_rest_since(robot, time.monotonic_ns())
    assert_recovers(arm, robot)


def test_a_delay_that_is_there_before_the_motion(arm, robot):
    """While nothing moves nobody sends set-points, so the first ones show it."""
    late = 0.0
    while late < 0.4:
        robot.delay(UP, late := late + 0.002)
        assert arm.state().fault == ""
        time.sleep(PERIOD_S)
    sweep = Sweep(arm)
    begin = time.monotonic_ns()
    assert re.search(r"hears us 0\.2\d s late", sweep.until_refused(1.0))
    fault = time.monotonic_ns()
    time.sleep(1.0)
    assert moved(robot) > begin, "the arm did not move, so the test shows nothing"
    assert moved(robot) < fault + int(REST_S * 1e9), f"moved {(moved(robot) - fault) / 1e6:.0f} ms after the fault"
    assert_recovers(arm, robot)


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_delay_of_half_a_second(arm, robot, direction):
    check(arm, robot, lambda: robot.delay(direction, 0.5), LOST)


@pytest.mark.parametrize("directions", [(UP,), (DOWN,), (UP, DOWN)])
def test_an_unplugged_cable(arm, robot, directions):
    check(arm, robot, lambda: robot.freeze(*directions), ("silent", "stopped our program", "hears us"))


def refused_after(arm, seconds):
    """Stream set-points that stand; return after how many s the arm refused one, None if it took all."""
    state, still = arm.state(), np.zeros(3)
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        try:
            arm.command(Setpoint(state.tool_position, state.tool_quaternion, still, still))
        except ArmError:
            return passed
        time.sleep(PERIOD_S)
    return None


def test_a_twin_that_holds_its_pose_may_be_silent_for_longer_than_one_that_moves(arm, robot):
    arm.start()
    assert refused_after(arm, 0.3) is None
    robot.freeze(DOWN)
    assert refused_after(arm, 1.8) is None
    robot.heal()
    assert refused_after(arm, 0.3) is None and arm.state().in_control
    robot.freeze(DOWN)
    assert refused_after(arm, 5.0) == pytest.approx(2.0, abs=0.05)
    assert "silent for 2.00 s: it is a twin" in arm.state().fault


def test_a_robot_that_holds_its_pose_is_lost_after_the_limit(robot):
    arm = build_arm("ur", UrConfig(robot.address, **{**OPTIONS, "twin": False}))
    arm.connect()
    arm.start()
    assert refused_after(arm, 0.3) is None
    robot.freeze(DOWN)
    assert refused_after(arm, 5.0) == pytest.approx(0.2, abs=0.05)
    assert "silent for 0.20 s: check cable and power" in arm.state().fault
    arm.close()


def test_a_little_delay_is_carried(arm, robot):
    robot.delay(UP, 0.02)
    robot.delay(DOWN, 0.02)
    sweep = Sweep(arm)
    sweep.run(1.5)
    assert arm.state().in_control
    arm.stop()
    assert arm.state().fault == ""


def test_set_points_that_fall_silent_in_motion_stop_the_arm(arm, robot):
    sweep = Sweep(arm)
    sweep.run(0.5)
    event = time.monotonic_ns()
    while not arm.state().fault:
        assert time.monotonic_ns() - event < 0.25e9
        time.sleep(0.002)
    assert "no set-point for 0.2 s" in arm.state().fault
    assert_at_rest_since(robot, event)
    arm.recover()
    arm.start()
    assert arm.state().in_control

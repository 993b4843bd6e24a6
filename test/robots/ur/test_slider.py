"""A UR whose speed slider is not at 100 %: nothing catches up, and a sentence says what to do. In lockstep."""

import time

import numpy as np
import pytest
from robots.ur_sweep import OPTIONS, Sweep, assert_at_rest_since

from bid_ros.core.errors import ArmError
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.moves import MoveJ
from bid_ros.robots.ur.twin.pendant import COMMANDS, INITIAL_Q
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.robots.ur.twin.robot import Robot

SENTENCE = (
    "robot at {} runs at {} % speed, so it cannot follow: set the speed slider of its pendant to 100 %, then reset; "
    "--slow makes a policy slower"
)


@pytest.fixture
def arm(robot):
    built = build_arm("ur", UrConfig(robot.address, model="ur5e", **OPTIONS))
    built.connect()
    yield built
    built.close()


def slider(robot, percent):
    COMMANDS["speed"](robot.machine, str(percent))


@pytest.mark.parametrize("percent", [80, 0])
def test_a_slider_that_is_moved_in_motion_stops_the_arm_and_nothing_catches_up(arm, robot, percent):
    sweep = Sweep(arm)
    sweep.run(0.3)
    event = time.monotonic_ns()
    slider(robot, percent)
    assert sweep.until_refused(1.0) == SENTENCE.format(robot.address, percent)
    assert_at_rest_since(robot, event)
    rests = arm.state().joint_positions
    slider(robot, 100)
    time.sleep(1.0)
    np.testing.assert_allclose(arm.state().joint_positions, rests, atol=1e-3)
    arm.recover()
    Sweep(arm).run(0.3)
    assert arm.state().fault == ""


def test_below_full_speed_nothing_begins(arm, robot):
    slider(robot, 50)
    time.sleep(0.1)
    for begin in (arm.start, arm.start_joints, lambda: arm.move_to_joints(INITIAL_Q)):
        with pytest.raises(ArmError) as caught:
            begin()
        assert str(caught.value) == SENTENCE.format(robot.address, 50)
    slider(robot, 100)
    time.sleep(0.1)
    arm.start()


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.25])
def test_the_twin_s_motions_take_as_much_longer_as_its_slider_says(fraction):
    robot = Robot(KinematicPlant(INITIAL_Q), UR5E)
    robot.speed_fraction = fraction
    for _ in range(500):
        robot.cycle(0.002)  # the controller follows its slider
    goal, before, cycles = robot.q + 0.4, robot.q, 0
    robot.start(MoveJ(goal, 1.0, 4.0))
    while not robot.arrived:
        robot.cycle(0.002)
        cycles += 1
        np.testing.assert_allclose(robot.q - before, robot.qd * 0.002, atol=1e-9)
        before = robot.q
    assert cycles * 0.002 * fraction == pytest.approx(0.4 / 1.0 + 1.0 / 4.0, abs=0.01)


def test_the_slider_takes_0_to_100(robot):
    for wrong in ("101", "-1", "nan", "fast", ""):
        with pytest.raises(ArmError, match="valid is 0 to 100"):
            slider(robot, wrong)

"""The kinematics of a URDF against those that the project has of two arms, by another way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from franka_urdf import FRANKA_HOME, franka_urdf

from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.franka.kinematics import FLANGE, HAND, forward
from bid_ros.robots.ros.kinematics import ChainKinematics
from bid_ros.robots.ros.twin.description import arm_urdf
from bid_ros.robots.ros.urdf import read_chain
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.model import HOME_Q


@pytest.fixture(scope="module")
def ur():
    return ChainKinematics(read_chain(arm_urdf(), "base_link", "tool0", "the twin"))


@pytest.fixture(scope="module")
def franka():
    length, turn = HAND
    tool = (0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2))
    return ChainKinematics(read_chain(franka_urdf(), "link0", "link7", "x"), (0.0, 0.0, FLANGE + length), tool)


def test_the_tool_is_where_the_project_puts_it(ur, franka):
    random = np.random.default_rng(3)
    for _ in range(20):
        joints = random.uniform(-2, 2, 6)
        assert ur.forward(joints)[0] == pytest.approx(UR5E.forward(joints)[:3], abs=1e-12)
        assert ur.jacobian(joints) == pytest.approx(UR5E.jacobian(joints), abs=1e-12)
        seven = random.uniform(-2, 2, 7)
        for mine, theirs in zip(franka.forward(seven), forward(seven), strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)


def test_the_inverse_finds_the_posture_that_is_near(ur):
    random, home = np.random.default_rng(4), np.array(HOME_Q)
    for _ in range(20):
        wanted = home + random.uniform(-0.1, 0.1, 6)
        reached = ur.inverse(*ur.forward(wanted), home)
        assert reached.off_m < 1e-6 and reached.off_rad < 1e-6
        assert reached.joints == pytest.approx(wanted, abs=1e-5)


def test_a_pose_out_of_reach_tells_how_far_off_the_nearest_is(ur):
    reached = ur.inverse(np.array([2.0, 0.0, 0.3]), np.eye(3), np.array(HOME_Q))
    assert np.isfinite(reached.joints).all() and reached.off_m > 0.5


def test_speeds_move_the_tool_with_the_twist(ur):
    joints, twist = np.array(HOME_Q), np.array([0.1, -0.2, 0.05, 0.2, 0.1, -0.3])
    step = 1e-5 * ur.speeds(joints, twist)
    (before, turned), (after, turned_on) = ur.forward(joints), ur.forward(joints + step)
    assert (after - before) / 1e-5 == pytest.approx(twist[:3], abs=1e-4)
    assert turned_on == pytest.approx(matrix_from_vector(1e-5 * twist[3:]) @ turned, abs=1e-8)


def test_an_arm_of_seven_joints_comes_back_to_its_posture_while_the_tool_stands(franka):
    position, rotation = franka.forward(FRANKA_HOME)
    joints = franka.inverse(position, rotation, FRANKA_HOME + 0.05).joints
    away = float(np.abs(joints - FRANKA_HOME).max())
    for turn in range(200):
        moved = position + np.array([0.0, 0.0, 1e-4 * (turn % 2)])  # a tool at rest is never iterated for
        reached = franka.inverse(moved, rotation, joints, FRANKA_HOME)
        assert reached.off_m < 1e-5
        joints = reached.joints
    assert np.abs(joints - FRANKA_HOME).max() < 0.3 * away


def test_the_pull_to_the_posture_is_as_small_as_it_is_asked_to_be(franka):
    away = FRANKA_HOME + np.array([0.8, 0.3, -0.8, 0.0, 0.3, 0.0, 0.0])
    position, rotation = franka.forward(away)
    wanted = position + np.array([0.0, 0.0, 0.01])
    free = franka.inverse(wanted, rotation, away).joints
    for most in (1e-4, 1e-3):
        reached = franka.inverse(wanted, rotation, away, FRANKA_HOME, np.full(7, most))
        assert reached.off_m < 1e-5
        assert 0.5 * most < np.abs(reached.joints - free).max() < 1.5 * most


def test_an_arm_of_few_joints_reaches_places_where_its_turn_counts_little():
    text = arm_urdf().replace('name="wrist_3_joint" type="revolute"', 'name="wrist_3_joint" type="fixed"')
    five = ChainKinematics(read_chain(text, "base_link", "tool0", "x"), rotation_weight=0.01)
    position, rotation = five.forward(np.array(HOME_Q)[:5])
    reached = five.inverse(position + np.array([0.03, 0.02, 0.01]), rotation, np.array(HOME_Q)[:5])
    assert five.joints == 5 and reached.off_m < 0.001


def test_a_tool_that_was_measured_elsewhere_is_placed_there_and_the_error_shrinks_all_around(ur):
    own = replace(UR5E, d1=UR5E.d1 + 0.003, a2=UR5E.a2 - 0.004, d4=UR5E.d4 + 0.002)
    real = ChainKinematics(read_chain(arm_urdf(own), "base_link", "tool0", "the robot"))
    fitted, home = ChainKinematics(read_chain(arm_urdf(), "base_link", "tool0", "the twin")), np.array(HOME_Q)
    for _ in range(2):
        off_m, off_rad = fitted.fit(home, *real.forward(home))
        assert off_m == pytest.approx(np.linalg.norm(real.forward(home)[0] - ur.forward(home)[0])) and off_m > 0.003
        assert off_rad < 1e-6
        assert fitted.forward(home)[0] == pytest.approx(real.forward(home)[0], abs=1e-12)
    near = home + 0.2 * np.array([1, -1, 1, 1, -1, 1])
    was, remains = (np.linalg.norm(model.forward(near)[0] - real.forward(near)[0]) for model in (ur, fitted))
    assert remains < 0.5 * was

"""The published limits of an FR3, and how near commands come to them."""

import math

import numpy as np
import pytest
from franky_sim.franka_robot_protocol import StateMotionGeneratorMode as Generator
from franky_sim.franka_robot_protocol import UDPCommand

from bid_ros.robots.franka.twin.reflexes import CommandedPath, Reflex, moving_shares, torque_share, within

STILL = (0.0,) * 7
# https://frankarobotics.github.io/docs/robot_specifications.html, Limits for Franka Research 3.
SPEEDS = (2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26)
HOME = (0.0, -0.3, 0.0, -2.4, 0.0, 2.1, 0.8)


def pose(x=0.0, turned=0.0):
    """A frame at x m along the base's x axis, turned about its z axis by an angle in rad."""
    matrix = np.eye(4)
    matrix[:2, :2] = [[math.cos(turned), -math.sin(turned)], [math.sin(turned), math.cos(turned)]]
    matrix[0, 3] = x
    return UDPCommand(O_T_EE_c=tuple(matrix.ravel(order="F")))


def twist(x=0.0, turn=0.0):
    return UDPCommand(O_dP_EE_c=(x, 0.0, 0.0, 0.0, 0.0, turn))


def joints(offset=0.0, joint=0):
    return UDPCommand(q_c=tuple(q + offset * (i == joint) for i, q in enumerate(HOME)))


def speeds(value=0.0, joint=0):
    return UDPCommand(dq_c=tuple(value * (i == joint) for i in range(7)))


def beyond(generator, start, commands, cycles=1):
    """Return the first reflex, or None."""
    path = CommandedPath(generator, start)
    for command in commands:
        for share, reflex in path.judge(command, cycles):
            if share > 1.0:
                return reflex
    return None


@pytest.mark.parametrize("joint", range(7))
def test_each_joint_has_its_speed(joint):
    for share in (0.99, -0.99, 1.01, -1.01):
        dq = tuple(share * SPEEDS[joint] * (i == joint) for i in range(7))
        (near, reflex), (tool, _) = moving_shares(dq, (0.4, 0.0, 0.3), (0.4, 0.0, 0.3))
        assert (near, tool) == (pytest.approx(abs(share)), 0.0)
        assert reflex is Reflex.JOINT_VELOCITY


def test_the_tool_has_its_speed_in_any_direction():
    _, (near, reflex) = moving_shares(STILL, (0.4, 0.0, 0.3), (0.402, -0.002, 0.301))
    assert (near, reflex) == (pytest.approx(1.0), Reflex.TOOL_VELOCITY)


def test_torque_changes_by_one_newton_metre_a_cycle():
    assert torque_share(STILL, (0, 0, 0, 0, 0, 0, -1.0)) == 1.0
    assert torque_share((5.0,) * 7, (5.5,) * 7) == 0.5


@pytest.mark.parametrize("joint", range(7))
def test_joints_stay_within_their_ranges(joint):
    lowest = (-2.9007, -1.8361, -2.9007, -3.0770, -2.8763, 0.4398, -3.0508)
    highest = (2.9007, 1.8361, 2.9007, -0.1169, 2.8763, 4.6216, 3.0508)
    for value, valid in ((lowest[joint], False), (highest[joint], False), (lowest[joint] + 1e-4, True)):
        q = tuple(value if i == joint else HOME[i] for i in range(7))
        assert within(q) is valid


def ramp(cycles, acceleration):
    """Speeds of a ramp that begins with half a step, so that its jerk stays within 5000 rad/s^3."""
    return acceleration * 0.001 * (np.arange(1, cycles + 1) - 0.5)


@pytest.mark.parametrize(
    ("generator", "start", "commands", "reflex"),
    [
        (Generator.kJointVelocity, speeds(), [speeds(v) for v in ramp(100, 9.9)], None),
        (Generator.kJointVelocity, speeds(), [speeds(v) for v in ramp(300, 9.9)], Reflex.PATH_JOINT_VELOCITY),
        (Generator.kJointVelocity, speeds(), [speeds(0.0049), speeds(0.0151)], Reflex.PATH_JOINT_ACCELERATION),
        (Generator.kJointVelocity, speeds(), [speeds(0.0051)], Reflex.PATH_JOINT_JERK),
        (Generator.kJointPosition, joints(), [joints(2.8e-6), joints(5.6e-6)], None),
        (Generator.kJointPosition, joints(), [joints(0.003)], Reflex.PATH_JOINT_VELOCITY),
        (Generator.kJointPosition, joints(), [joints(0.002)], Reflex.PATH_JOINT_ACCELERATION),
        (Generator.kJointPosition, joints(), [joints(5.1e-6)], Reflex.PATH_JOINT_JERK),
        (Generator.kCartesianVelocity, twist(), [twist(0.004)], None),
        (Generator.kCartesianVelocity, twist(), [twist(3.01)], Reflex.PATH_TOOL_VELOCITY),
        (Generator.kCartesianVelocity, twist(), [twist(turn=2.51)], Reflex.PATH_TOOL_VELOCITY),
        (Generator.kCartesianVelocity, twist(), [twist(0.0044), twist(0.0135)], Reflex.PATH_TOOL_ACCELERATION),
        (Generator.kCartesianVelocity, twist(), [twist(0.0046)], Reflex.PATH_TOOL_JERK),
        (Generator.kCartesianPosition, pose(), [pose(4e-6), pose(8e-6)], None),
        (Generator.kCartesianPosition, pose(), [pose(0.0031)], Reflex.PATH_TOOL_VELOCITY),
        (Generator.kCartesianPosition, pose(), [pose(turned=0.0026)], Reflex.PATH_TOOL_VELOCITY),
        (Generator.kCartesianPosition, pose(), [pose(turned=1e-3)], Reflex.PATH_TOOL_ACCELERATION),
        (Generator.kCartesianPosition, pose(), [pose(4.6e-6)], Reflex.PATH_TOOL_JERK),
    ],
)
def test_a_path_keeps_to_speed_acceleration_and_jerk(generator, start, commands, reflex):
    assert beyond(generator, start, commands) is reflex


def test_a_path_that_leaves_the_range_of_a_joint():
    start = UDPCommand(q_c=(2.9006999, *HOME[1:]))
    assert beyond(Generator.kJointPosition, start, [UDPCommand(q_c=(2.9007001, *HOME[1:]))]) is (
        Reflex.PATH_JOINT_POSITION
    )


def test_where_the_computer_is_forgiven_only_position_and_speed_are_judged():
    path = CommandedPath(Generator.kJointPosition, joints())
    assert path.judge(joints(0.02), 10, steps=False) == [
        (pytest.approx(2.0 / 2.62), Reflex.PATH_JOINT_VELOCITY),
        (0.0, Reflex.PATH_JOINT_POSITION),
    ]
    # Until it has settled, its speed is the mean one since before the gap.
    assert path.judge(joints(0.02), 1, steps=False)[0][0] == pytest.approx(0.02 / 0.011 / 2.62)
    assert len(path.judge(joints(0.02), 1)) == 4


def test_a_lost_command_goes_on_with_the_same_acceleration():
    path = CommandedPath(Generator.kJointPosition, joints())
    for t in range(1, 4):
        path.judge(joints(0.5 * 4e-6 * t * t), 1)
    missing = [path.go_on().q_c[0] for _ in range(2)]
    # By differences: speed 10e-6, growing by 4e-6 a cycle.
    np.testing.assert_allclose(missing, [18e-6 + 14e-6, 18e-6 + 14e-6 + 18e-6], atol=1e-12)
    assert not [reflex for share, reflex in path.judge(joints(0.5 * 4e-6 * 36), 1) if share > 1.0]

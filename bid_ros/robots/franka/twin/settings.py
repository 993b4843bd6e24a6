"""What a client sets of the arm: load and frames. What no robot has is refused."""

from typing import Final

import numpy as np
from franky_sim.franka_robot_protocol import RobotCommand

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot

SUCCESS: Final = 0
INVALID: Final = 2
MAX_LOAD: Final = 20.0  # kg, and its distance in m and inertia in kg m^2
MAX_DISTANCE: Final = 10.0  # m, of a frame
_IGNORED: Final = (  # the twin has no contact thresholds, and one stiffness
    RobotCommand.kSetCollisionBehavior,
    RobotCommand.kSetJointImpedance,
    RobotCommand.kSetCartesianImpedance,
)


def set_property(robot: FastFrankaRobot, command: int, values: tuple[float, ...]) -> int:
    """Set a property of the arm.

    Args:
        robot: the arm.
        command: which, as in libfranka's protocol.
        values: its payload.

    Returns:
        The status to answer with.
    """
    if command in _IGNORED:
        return SUCCESS
    if command == RobotCommand.kSetLoad:
        if not (values[0] >= 0.0 and max(map(abs, values)) <= MAX_LOAD):
            return INVALID
        robot.set_load(values[0], values[1:4], values[4:13])
        return SUCCESS
    if not is_transform(values):
        return INVALID
    if command == RobotCommand.kSetEEToK:
        robot.set_EE_T_K(values)
    else:
        robot.set_NE_T_EE(values)
    return SUCCESS


def is_transform(values: tuple[float, ...]) -> bool:
    """Whether 16 numbers, column by column, are a rotation and a displacement of at most 10 m."""
    matrix = np.reshape(values, (4, 4), order="F")
    turn = matrix[:3, :3]
    return bool(
        np.abs(turn).max() < 1.1
        and np.allclose(turn @ turn.T, np.eye(3), atol=1e-4)
        and np.linalg.det(turn) > 0
        and np.array_equal(matrix[3], [0, 0, 0, 1])
        and np.abs(matrix[:3, 3]).max() <= MAX_DISTANCE
    )

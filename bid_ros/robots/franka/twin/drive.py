"""What drives the joints in a cycle: the client's command in one of five ways, or the robot by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pinocchio
from franky_sim.franka_robot_protocol import (
    MoveCommandControllerMode,
    MoveCommandMotionGeneratorMode,
    StateControllerMode,
    StateMotionGeneratorMode,
    UDPCommand,
)
from numpy.typing import NDArray

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.reflexes import CommandedPath

Array: TypeAlias = NDArray[np.float64]
Drive: TypeAlias = Callable[[FastFrankaRobot, UDPCommand, bool], None]


def _torques(robot: FastFrankaRobot, command: UDPCommand, new: bool) -> None:
    robot.torque_control(np.array(command.tau_J_d), new)


def _joints(robot: FastFrankaRobot, command: UDPCommand, new: bool) -> None:
    robot.joint_position_control(np.array(command.q_c), new)


def _joint_speeds(robot: FastFrankaRobot, command: UDPCommand, new: bool) -> None:
    robot.joint_velocity_control(np.array(command.dq_c), new)


def _pose(robot: FastFrankaRobot, command: UDPCommand, new: bool) -> None:
    matrix = np.array(command.O_T_EE_c).reshape(4, 4, order="F")
    turn = pinocchio.Quaternion(matrix[:3, :3])
    pose = np.array([*matrix[:3, 3], turn.x, turn.y, turn.z, turn.w])
    robot.cartesian_position_control(pose, _elbow(command), new)


def _twist(robot: FastFrankaRobot, command: UDPCommand, new: bool) -> None:
    robot.cartesian_velocity_control(np.array(command.O_dP_EE_c), _elbow(command), new)


def _elbow(command: UDPCommand) -> Array | None:
    return np.array(command.elbow_c) if command.valid_elbow else None


_GENERATORS: Final[dict[int, tuple[StateMotionGeneratorMode, Drive]]] = {
    MoveCommandMotionGeneratorMode.kJointPosition: (StateMotionGeneratorMode.kJointPosition, _joints),
    MoveCommandMotionGeneratorMode.kJointVelocity: (StateMotionGeneratorMode.kJointVelocity, _joint_speeds),
    MoveCommandMotionGeneratorMode.kCartesianPosition: (StateMotionGeneratorMode.kCartesianPosition, _pose),
    MoveCommandMotionGeneratorMode.kCartesianVelocity: (StateMotionGeneratorMode.kCartesianVelocity, _twist),
}
_CONTROLLERS: Final = {
    MoveCommandControllerMode.kJointImpedance: StateControllerMode.kJointImpedance,
    MoveCommandControllerMode.kCartesianImpedance: StateControllerMode.kCartesianImpedance,
}


@dataclass
class Motion:
    """A motion that a client has begun with Move.

    Attributes:
        number: of the Move, which is answered again when the motion ends.
        controller, generator: modes as the state tells them.
        drive: applies a command.
        command: the newest of the client.
        path: of the commands, if a motion generator sends them.
    """

    number: int
    controller: StateControllerMode
    generator: StateMotionGeneratorMode
    drive: Drive
    command: UDPCommand
    path: CommandedPath | None

    @classmethod
    def of(
        cls, number: int, controller: int, generator: int, q: tuple[float, ...], pose: tuple[float, ...]
    ) -> "Motion":
        """Return the motion of a Move, whose first command keeps the robot where it is.

        Args:
            number: of the Move.
            controller, generator: as in the Move.
            q: joints that are wanted now, rad; pose: of the tool, 4 x 4 column by column, m.

        Raises:
            ValueError: if the robot has no such controller or motion generator.
        """
        command = UDPCommand(q_c=q, O_T_EE_c=pose)
        state, drive = _GENERATORS.get(generator, (StateMotionGeneratorMode.kNone, _torques))
        if controller == MoveCommandControllerMode.kExternalController:
            valid = generator in (*_GENERATORS, MoveCommandMotionGeneratorMode.kNone)
            mode, drive = StateControllerMode.kExternalController, _torques
        else:
            valid = generator in _GENERATORS and controller in _CONTROLLERS
            mode = _CONTROLLERS.get(controller, StateControllerMode.kOther)
        if not valid:
            raise ValueError(f"controller mode {controller} with motion generator mode {generator}")
        torques = state is StateMotionGeneratorMode.kNone
        return cls(number, mode, state, drive, command, None if torques else CommandedPath(state, command))

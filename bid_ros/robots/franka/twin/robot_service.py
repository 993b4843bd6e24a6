"""The service of the arm: motions, their commands at 1 kHz, the state, and what is set."""

import math
from typing import Any, Final

import numpy as np
from franky_sim.franka_robot_protocol import (
    AutomaticErrorRecoveryStatus,
    MoveStatus,
    RobotCommand,
    RobotMode,
    StateControllerMode,
    StateMotionGeneratorMode,
    UDPCommand,
)
from franky_sim.urdf import FR3_URDF

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.drive import Motion
from bid_ros.robots.franka.twin.messages import ROBOT
from bid_ros.robots.franka.twin.service import FciService

GRAVITY: Final = (0.0, 0.0, -9.81)  # m/s^2, as a robot's state says it; libfranka's model of the arm asks for it
MAX_LOAD: Final = 20.0  # kg
SUCCESS, REJECTED, INVALID = 0, 1, 2  # of what is set
_IGNORED: Final = (  # the twin has no contact thresholds, and one stiffness
    RobotCommand.kSetCollisionBehavior,
    RobotCommand.kSetJointImpedance,
    RobotCommand.kSetCartesianImpedance,
)


class RobotService(FciService):
    """Serves an arm: the client's motion, or holding still.

    Args:
        robot: the arm.
    """

    def __init__(self, robot: FastFrankaRobot) -> None:
        super().__init__(ROBOT)
        self._robot = robot
        self._motion: Motion | None = None
        self._held = np.array(robot.inner_state.q)
        self._newest = 0  # number of the state that the newest command answers

    def cycle(self) -> None:
        """Serve the client and drive the joints. Called before a step of the physics."""
        self.serve()
        self.drive()

    def drive(self) -> None:
        """Take the newest command and drive the joints."""
        new = False
        for data in self.received():
            new = self._take_command(data) or new
        if self._motion is None:
            self._robot.joint_position_control(self._held)
        else:
            self._motion.drive(self._robot, self._motion.command, new)

    def state_bytes(self) -> bytes:
        """Return the state of arm and motion."""
        motion = self._motion
        state = self._robot.state.replace(
            robot_mode=RobotMode.kIdle if motion is None else RobotMode.kMove,
            controller_mode=StateControllerMode.kOther if motion is None else motion.controller,
            motion_generator_mode=StateMotionGeneratorMode.kIdle if motion is None else motion.generator,
            O_ddP_O=GRAVITY,
        )
        packed: bytes = state.pack_state()
        return packed

    def left(self) -> None:
        """Hold still where the arm is."""
        self._motion, self._held = None, np.array(self._robot.inner_state.q)

    def take(self, command: int, number: int, values: tuple[Any, ...]) -> None:
        """Do a command of the client and answer it."""
        if command == RobotCommand.kMove:
            self._move(number, values[0], values[1])
        elif command == RobotCommand.kStopMove:
            self.reply(command, number, SUCCESS)
            self._end_motion(MoveStatus.kPreempted)
            self.send_state()
        elif command == RobotCommand.kGetRobotModel:
            self.reply(command, number, SUCCESS, FR3_URDF.encode("ascii"))
        elif command == RobotCommand.kAutomaticErrorRecovery:
            self.reply(command, number, AutomaticErrorRecoveryStatus.kSuccess)
        else:
            self.reply(command, number, SUCCESS if self._set(command, values) else INVALID)

    def _set(self, command: int, values: tuple[float, ...]) -> bool:
        """Set a property of the arm; return whether its values are valid."""
        if command in _IGNORED:
            return True
        if command == RobotCommand.kSetLoad:
            valid = 0.0 <= values[0] <= MAX_LOAD and max(map(abs, values[1:])) <= MAX_LOAD
            if valid:
                self._robot.set_load(values[0], values[1:4], values[4:13])
            return valid
        if not is_transform(values):
            return False
        if command == RobotCommand.kSetEEToK:
            self._robot.set_EE_T_K(values)
        else:
            self._robot.set_NE_T_EE(values)
        return True

    def _move(self, number: int, controller: int, generator: int) -> None:
        if self._motion is not None:
            self.reply(RobotCommand.kMove, number, MoveStatus.kCommandNotPossibleRejected)
            return
        state = self._robot.state
        try:
            motion = Motion.of(number, controller, generator, tuple(state.q), tuple(state.O_T_EE))
        except ValueError:
            self.reply(RobotCommand.kMove, number, MoveStatus.kInvalidArgumentRejected)
            return
        self._motion, self._newest = motion, self._sent - 1
        self.reply(RobotCommand.kMove, number, MoveStatus.kMotionStarted)

    def _end_motion(self, status: MoveStatus) -> None:
        """End the motion, if there is one, tell the client, and hold the joints that were last wanted."""
        motion, self._motion = self._motion, None
        if motion is not None:
            self._held = np.array(self._robot.state.q_d)
            self.reply(RobotCommand.kMove, motion.number, status)

    def _take_command(self, data: bytes) -> bool:
        """Take a datagram of the client; return whether it is a command for the motion, newer than those before."""
        motion = self._motion
        if motion is None or len(data) != UDPCommand.STRUCT.size:
            return False
        command = UDPCommand.from_bytes(data)
        if not self._newest < command.message_id < self._sent or not is_finite(command):
            return False
        self._newest = command.message_id
        if command.motion_generation_finished or command.torque_command_finished:
            self._end_motion(MoveStatus.kSuccess)
        else:
            motion.command = command
        return True


def is_finite(command: UDPCommand) -> bool:
    """Whether every number that can move the arm is finite."""
    parts = (command.tau_J_d, command.q_c, command.dq_c, command.O_T_EE_c, command.O_dP_EE_c, command.elbow_c)
    return math.isfinite(sum(map(sum, parts)))


def is_transform(values: tuple[float, ...]) -> bool:
    """Whether 16 numbers, column by column, are a rotation and a displacement of at most 10 m."""
    matrix = np.reshape(values, (4, 4), order="F")
    turn = matrix[:3, :3]
    return bool(
        np.abs(turn).max() < 1.1
        and np.allclose(turn @ turn.T, np.eye(3), atol=1e-4)
        and np.linalg.det(turn) > 0
        and np.array_equal(matrix[3], [0, 0, 0, 1])
        and np.abs(matrix[:3, 3]).max() <= 10.0
    )

"""The service of the arm: motions, their commands at 1 kHz, reflexes, and the state."""

import logging
import math
import time
from collections.abc import Sequence
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
from bid_ros.robots.franka.twin.braking import Braking
from bid_ros.robots.franka.twin.drive import Motion
from bid_ros.robots.franka.twin.messages import ROBOT
from bid_ros.robots.franka.twin.reflexes import FLAGS, SLACK, Reflex, Shares, moving_shares, torque_share
from bid_ros.robots.franka.twin.service import FciService
from bid_ros.robots.franka.twin.settings import set_property
from bid_ros.robots.franka.twin.watchdog import PUBLISHED, CommandWatchdog, Patience

GRAVITY: Final = (0.0, 0.0, -9.81)  # m/s^2, as a robot's state says it; libfranka's model of the arm asks for it
DONE: Final = 0
RECOVERY_CYCLES: Final = 20  # between the end of a reflex and the answer: the client has seen a state without it
TOLD: Final = 256  # states of which the torques are kept; a command that answers an older one is ignored
_NO_FLAGS: Final[tuple[bool, ...]] = (False,) * FLAGS
LOG = logging.getLogger(__name__)


class RobotService(FciService):
    """Serves an arm: the client's motion, the reflex that ends it, or holding still.

    Args:
        robot: the arm.
        patience: what it forgives the client's computer.

    Attributes:
        recovery_fails: set it, and the robot's error recovery is refused, as after what a person must clear.
        watchdog: over the client's commands.
        reflex: the one that is latched, until the robot has recovered.
        user_stopped: the emergency stop is pressed; it stays so.
        nearest: how near commands and motion have come to the limit of a reflex, by its name in lower case.
    """

    def __init__(self, robot: FastFrankaRobot, patience: Patience = PUBLISHED) -> None:
        super().__init__(ROBOT)
        self._robot, self._patience = robot, patience
        self._motion: Motion | None = None
        self._held = np.array(robot.inner_state.q)
        self._braking: Braking | None = None
        self._heard_ns = 0  # when the newest command came
        self._newest = 0  # number of the state that the newest command answers
        self._last_reflex: tuple[bool, ...] = _NO_FLAGS
        self._tool: Sequence[float] | None = None  # place in the last state of the motion, m
        self._told: list[Sequence[float]] = [(0.0,) * 7] * TOLD  # torques that the newest states told, by number
        self._recovering = self._recovery_left = 0  # number of the recovery that is not yet answered, cycles until then
        self.recovery_fails = self.user_stopped = False
        self.watchdog = CommandWatchdog(patience)
        self.reflex: Reflex | None = None
        self.nearest: dict[str, float] = {}

    def cycle(self, counted: bool = True) -> None:
        """Serve the client and drive the joints. Called before a step of the physics.

        Args:
            counted: whether the client has had its time to answer the last state.
        """
        motion, new = self._motion, False
        self.serve()
        for data in self.received():
            new = self._take_command(data) or new
        if new:
            self._heard_ns = time.monotonic_ns()
        # The first command of a motion is due in the cycle after its beginning.
        if self._motion is not None and self._motion is motion and self.watchdog.trips(new, counted):
            lost, silence = self.watchdog.lost, (time.monotonic_ns() - self._heard_ns) / 1e6
            why = f"{lost} commands lost in a row, the last came {silence:.0f} ms ago"
            self._abort(Reflex.COMMUNICATION, f"{why}: the computer of the client was late, not the policy")
        self.drive(new)

    def drive(self, new: bool = False) -> None:
        """Drive the joints for a cycle; ``new`` says whether the command is."""
        if self._recovering:
            self._go_on_recovering()
        if self._motion is not None and self.watchdog.brakes:
            self._braking = self._braking or self._brake()
        elif self._motion is not None:
            self._braking = None
        if self._braking is not None:
            self._braking.drive(self._robot)
        elif self._motion is not None:
            if not (new or self._patience.gaps) and self._motion.path is not None:
                self._motion.command = self._motion.path.go_on()
            self._motion.drive(self._robot, self._motion.command, new)
        else:
            self._robot.joint_position_control(self._held)

    def state_bytes(self) -> bytes:
        """Return the state of arm and motion."""
        state = self._robot.state
        self._told[self._sent % TOLD] = state.tau_J_d
        before, self._tool = self._tool, state.O_T_EE[12:15]
        if self._motion is not None:
            # franky-sim tells the commanded tool, not the measured one, where joints are commanded.
            if before is None or self._motion.path is not None:
                before = self._tool
            self._judge(moving_shares(state.dq, before, self._tool))
        motion = self._motion
        state = state.replace(
            robot_mode=self._mode(),
            controller_mode=StateControllerMode.kOther if motion is None else motion.controller,
            motion_generator_mode=StateMotionGeneratorMode.kIdle if motion is None else motion.generator,
            control_command_success_rate=0.0 if motion is None else self.watchdog.success_rate,
            errors=_NO_FLAGS if self.reflex is None else self.reflex.flags,
            reflex_reason=self._last_reflex,
            O_ddP_O=GRAVITY,
        )
        packed: bytes = state.pack_state()
        return packed

    def left(self) -> None:
        """End the motion of a client that has left, as a robot does when its commands stay away."""
        self._recovering = 0
        if self._motion is not None:
            self._abort(Reflex.COMMUNICATION, "the client has left during a motion")

    def take(self, command: int, number: int, values: tuple[Any, ...]) -> None:
        """Do a command of the client and answer it."""
        if command == RobotCommand.kMove:
            self._move(number, values[0], values[1])
        elif command == RobotCommand.kStopMove:
            self.reply(command, number, DONE)
            if self._motion is not None:
                self._end_motion(MoveStatus.kPreempted)
            self.send_state()
        elif command == RobotCommand.kGetRobotModel:
            self.reply(command, number, DONE, FR3_URDF.encode("ascii"))
        elif command == RobotCommand.kAutomaticErrorRecovery:
            self._recover(number)
        else:
            self.reply(command, number, set_property(self._robot, command, values))

    def emergency_stop(self) -> None:
        """Press the emergency stop: the arm brakes, and nothing moves it again."""
        self.user_stopped = True
        self._braking = self._braking or self._brake()
        motion, self._motion = self._motion, None
        if motion is not None:
            self.reply(RobotCommand.kMove, motion.number, MoveStatus.kEmergencyAborted)

    def _mode(self) -> RobotMode:
        if self.user_stopped:
            return RobotMode.kUserStopped
        if self._recovering:
            return RobotMode.kAutomaticErrorRecovery
        if self.reflex is not None:
            return RobotMode.kReflex
        return RobotMode.kIdle if self._motion is None else RobotMode.kMove

    def _move(self, number: int, controller: int, generator: int) -> None:
        if self._motion is not None or self.reflex is not None or self.user_stopped:
            self.reply(RobotCommand.kMove, number, MoveStatus.kCommandNotPossibleRejected)
            return
        state = self._robot.state
        try:
            motion = Motion.of(number, controller, generator, tuple(state.q_d), tuple(state.O_T_EE))
        except ValueError:
            self.reply(RobotCommand.kMove, number, MoveStatus.kInvalidArgumentRejected)
            return
        self._tool = None
        self._motion, self._newest, self._last_reflex = motion, self._sent - 1, _NO_FLAGS
        self.watchdog.begin()
        self._heard_ns = time.monotonic_ns()
        self.reply(RobotCommand.kMove, number, MoveStatus.kMotionStarted)

    def _end_motion(self, status: MoveStatus) -> None:
        """End the motion, tell the client, and hold the joints that were last wanted."""
        motion, self._motion, self._braking = self._motion, None, None
        self._held = np.array(self._robot.state.q_d)
        if motion is not None:
            self.reply(RobotCommand.kMove, motion.number, status)

    def _abort(self, reflex: Reflex, why: str) -> None:
        """End the motion by a reflex: brake, and latch it until the robot has recovered."""
        LOG.warning("Franka twin: reflex %s: %s", reflex.name.lower(), why)
        motion, self._motion = self._motion, None
        self._braking = self._braking or self._brake()
        self.reflex, self._last_reflex = reflex, reflex.flags
        if motion is not None:
            self.reply(RobotCommand.kMove, motion.number, MoveStatus.kReflexAborted)

    def _brake(self) -> Braking:
        inner = self._robot.inner_state
        return Braking(np.array(inner.q), np.array(inner.dq))

    def _judge(self, shares: Shares) -> None:
        """Note how near values have come to their limits; beyond one, abort the motion."""
        for near, reflex in shares:
            name = reflex.name.lower()
            self.nearest[name] = max(near, self.nearest.get(name, 0.0))
            if not near <= 1.0 + SLACK and self._motion is not None:
                self._abort(reflex, f"{near:.2f} of the limit")

    def _recover(self, number: int) -> None:
        if self.recovery_fails and self.reflex is not None:
            status = AutomaticErrorRecoveryStatus.kManualErrorRecoveryRequiredRejected
            self.reply(RobotCommand.kAutomaticErrorRecovery, number, status)
        elif self._motion is not None or self._recovering or self.user_stopped:
            status = AutomaticErrorRecoveryStatus.kCommandNotPossibleRejected
            self.reply(RobotCommand.kAutomaticErrorRecovery, number, status)
        elif self._braking is None:
            self.reply(RobotCommand.kAutomaticErrorRecovery, number, AutomaticErrorRecoveryStatus.kSuccess)
        else:
            self._recovering, self._recovery_left = number, RECOVERY_CYCLES

    def _go_on_recovering(self) -> None:
        """Once the arm is at rest, clear the reflex; then tell it for some cycles, and answer."""
        if self._braking is not None:
            if self._braking.rests:
                self._held, self._braking, self.reflex = np.array(self._robot.state.q_d), None, None
            return
        self._recovery_left -= 1
        if self._recovery_left == 0:
            number, self._recovering = self._recovering, 0
            self.reply(RobotCommand.kAutomaticErrorRecovery, number, AutomaticErrorRecoveryStatus.kSuccess)

    def _take_command(self, data: bytes) -> bool:
        """Take a datagram of the client; return whether it is a command for the motion, newer than those before."""
        motion = self._motion
        if motion is None or len(data) != UDPCommand.STRUCT.size:
            return False
        command = UDPCommand.from_bytes(data)
        if not self._newest < command.message_id < self._sent or not is_finite(command):
            return False
        if self._sent - command.message_id > TOLD:
            return False
        gaps = self._patience.gaps
        cycles = command.message_id - self._newest if gaps else 1
        self._newest = command.message_id
        if command.motion_generation_finished or command.torque_command_finished:
            self._end_motion(MoveStatus.kSuccess)
            return True
        if motion.controller is StateControllerMode.kExternalController:
            before = self._told[command.message_id % TOLD] if gaps else motion.command.tau_J_d
            step = torque_share(before, command.tau_J_d)
            self._judge(((step, Reflex.TORQUE_STEP),))
        if motion.path is not None:
            self._judge(motion.path.judge(command, cycles, steps=not gaps))
        motion.command = command
        return True


def is_finite(command: UDPCommand) -> bool:
    """Whether every number that can move the arm is finite."""
    parts = (command.tau_J_d, command.q_c, command.dq_c, command.O_T_EE_c, command.O_dP_EE_c, command.elbow_c)
    return math.isfinite(sum(map(sum, parts)))

"""The controller without sockets: modes, arm and program, one cycle at a time.

Names and numbers of the modes are those of Universal Robots' RTDE guide.
"""

import logging
from enum import IntEnum
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import Kinematics
from bid_ros.robots.ur.twin.commands import commands
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.fields import OUTPUT_TYPES, FieldTable, Inputs
from bid_ros.robots.ur.twin.plant import Plant
from bid_ros.robots.ur.twin.program import DONE, ControlProgram
from bid_ros.robots.ur.twin.robot import Robot

POWER_ON_S: Final = 0.4  # a real arm takes some seconds; the order of modes is the same
BRAKE_RELEASE_S: Final = 0.4
LOG = logging.getLogger(__name__)


class RobotMode(IntEnum):
    """What the arm's power and brakes do."""

    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    RUNNING = 7


class SafetyMode(IntEnum):
    """What the safety system allows."""

    NORMAL = 1
    PROTECTIVE_STOP = 3
    ROBOT_EMERGENCY_STOP = 7


class RuntimeState(IntEnum):
    """What the program does."""

    STOPPING = 0
    STOPPED = 1
    PLAYING = 2


# Bits of safety_status_bits.
SAFETY_BITS: Final = {
    SafetyMode.NORMAL: 1 << 0,
    SafetyMode.PROTECTIVE_STOP: 1 << 2 | 1 << 10,  # protective stopped, and stopped due to safety
    SafetyMode.ROBOT_EMERGENCY_STOP: 1 << 6 | 1 << 7 | 1 << 10,  # robot emergency stopped, emergency stopped, and that
}
# Bits of robot_status_bits.
POWER_ON_BIT: Final = 1 << 0
PROGRAM_RUNNING_BIT: Final = 1 << 1
# Values of joint_mode.
JOINT_OFF, JOINT_IDLE, JOINT_RUNNING = 239, 255, 253


class UrMachine:
    """What Dashboard, pendant, script port and registers act on.

    Args:
        config: which controller it is.
        plant: the arm.
        kinematics: of the arm.

    Attributes:
        inputs, outputs: what RTDE clients write and read.
        robot: the commanded arm.
        clock_s: controller time since the start, s.
        remote_control: whether remote control is switched on at the pendant.
        robot_mode, safety_mode: what power and safety system do; runtime: state of the program.
        stop_reason: of the stop that is latched; empty without one.
    """

    def __init__(self, config: UrControllerConfig, plant: Plant, kinematics: Kinematics) -> None:
        self.config = config
        self.inputs, self.outputs = Inputs(), FieldTable(OUTPUT_TYPES)
        self.robot = Robot(plant, kinematics)
        self.clock_s = 0.0
        self.remote_control = config.remote_control
        self.robot_mode, self.safety_mode = RobotMode.RUNNING, SafetyMode.NORMAL
        self.runtime = RuntimeState.STOPPED
        self.stop_reason = ""
        self._stopped_at_s = 0.0
        self._next: list[tuple[float, RobotMode]] = []
        self._program: ControlProgram | None = None

    @property
    def powered(self) -> bool:
        """Whether the motors have power."""
        return self.robot_mode >= RobotMode.POWER_ON

    @property
    def ready(self) -> bool:
        """Whether a program may move the arm."""
        return self.robot_mode is RobotMode.RUNNING and self.safety_mode is SafetyMode.NORMAL

    @property
    def joint_mode(self) -> int:
        """``joint_mode`` of RTDE, the same for every joint."""
        if self.robot_mode is RobotMode.RUNNING:
            return JOINT_RUNNING
        return JOINT_IDLE if self.powered else JOINT_OFF

    @property
    def status_bits(self) -> int:
        """``robot_status_bits`` of RTDE."""
        running = PROGRAM_RUNNING_BIT if self._program is not None else 0
        return running | (POWER_ON_BIT if self.powered else 0)

    def run(self) -> None:
        """Run the uploaded control script in place of what runs now; refused if the robot cannot move."""
        refusal = "the robot is in local control" if self._local else ""
        if not refusal and not self.ready:
            mode, safety = self.robot_mode.name, self.safety_mode.name
            refusal = f"the robot mode is {mode} and the safety mode {safety}; needed are RUNNING and NORMAL"
        if refusal:
            LOG.warning("UR twin: an uploaded program does not run: %s", refusal)
            return
        self.end_program("another program was started")
        self._program = ControlProgram(
            commands(self.config.e_series), self.robot, self.inputs, self.outputs, 1.0 / self.config.rate
        )
        self.runtime = RuntimeState.PLAYING

    def stop_by_script(self) -> None:
        """End the program as somebody's ``stop program`` does; an e-Series in local control takes no scripts."""
        if not self._local:
            self.end_program("a client sent stop program")

    @property
    def _local(self) -> bool:
        return self.config.e_series and not self.remote_control

    def release_uploader(self) -> None:
        """End ur_rtde's wait for a program of the user's own, which is refused.

        The client has stopped its control script, and waits ten minutes until the registers say that the program is
        done. It then uploads its control script again, and finds that its connection was reset.
        """
        if self._program is None:
            self.outputs.set("output_int_register_0", DONE)

    def end_program(self, reason: str, level: int = logging.INFO) -> None:
        """End the program, if one runs, and bring the arm to rest; ``level`` is that of the log sentence."""
        if self._program is None:
            return
        LOG.log(level, "UR twin: the program ends: %s", reason)
        self._program = None
        self.runtime = RuntimeState.STOPPING
        self.robot.stop()

    def power_on(self) -> None:
        """Switch the motors on; the brakes stay closed."""
        if self.robot_mode is RobotMode.POWER_OFF and self.safety_mode is not SafetyMode.ROBOT_EMERGENCY_STOP:
            self.robot_mode = RobotMode.BOOTING
            middle_s, end_s = self.clock_s + POWER_ON_S / 2, self.clock_s + POWER_ON_S
            self._next = [(middle_s, RobotMode.POWER_ON), (end_s, RobotMode.IDLE)]

    def brake_release(self) -> None:
        """Open the brakes, switching the motors on first if they are off, as the robot does."""
        self.power_on()
        if self.robot_mode in (RobotMode.BOOTING, RobotMode.POWER_ON, RobotMode.IDLE):
            start_s = self._next[-1][0] if self._next else self.clock_s
            self._next.append((start_s + BRAKE_RELEASE_S, RobotMode.RUNNING))

    def power_off(self, reason: str = "the power is off") -> None:
        """Close the brakes and switch the motors off; the program ends."""
        self._next.clear()
        self.robot_mode = RobotMode.POWER_OFF
        self.end_program(reason)

    def protective_stop(self, reason: str) -> None:
        """Stop the arm, end the program and latch the stop until it is unlocked; the first reason and time are kept."""
        if not self.powered:
            return
        if self.safety_mode is SafetyMode.NORMAL:
            self.safety_mode, self.stop_reason = SafetyMode.PROTECTIVE_STOP, reason
            self._stopped_at_s = self.clock_s
            LOG.warning("UR twin: protective stop: %s", reason)
        self.end_program("protective stop")
        self.robot.stop()

    def unlock(self) -> bool:
        """Release a protective stop; return False while it is too fresh. Without one there is nothing to refuse."""
        if self.safety_mode is SafetyMode.PROTECTIVE_STOP:
            if self.clock_s - self._stopped_at_s < self.config.unlock_delay_s:
                return False
            self._normal()
        return True

    def emergency_stop(self) -> None:
        """Press the emergency stop: the power goes off and stays off."""
        self.safety_mode, self.stop_reason = SafetyMode.ROBOT_EMERGENCY_STOP, "emergency stop"
        self.power_off("emergency stop")

    def release_emergency_stop(self) -> None:
        """Turn the emergency stop's button back; the power stays off until it is switched on."""
        if self.safety_mode is SafetyMode.ROBOT_EMERGENCY_STOP:
            self._normal()

    def pass_by(self, late_ns: int) -> None:
        """Let the controller's clock run on where nothing else does: cycles that this computer was too slow for."""
        self.clock_s += late_ns / 1e9

    def cycle(self) -> None:
        """Pass one controller cycle: program, motion, arm."""
        dt = 1.0 / self.config.rate
        self.clock_s += dt
        while self._next and self.clock_s >= self._next[0][0]:
            self.robot_mode = self._next.pop(0)[1]
        if self._program is not None:
            self._step_program(self._program)
        self._move(dt)
        if self.runtime is RuntimeState.STOPPING and not self.robot.qd.any():
            self.runtime = RuntimeState.STOPPED

    def _step_program(self, program: ControlProgram) -> None:
        try:
            ended = program.step()
        except ArmError as error:
            self.end_program(str(error), logging.WARNING)
        else:
            if ended:
                self.end_program(ended)

    def _move(self, dt: float) -> None:
        if self.robot_mode is not RobotMode.RUNNING:
            self.robot.brake(dt)
            return
        try:
            self.robot.cycle(dt)
        except ArmError as error:
            self.protective_stop(str(error))

    def _normal(self) -> None:
        self.safety_mode, self.stop_reason = SafetyMode.NORMAL, ""

"""The controller without sockets and clocks: status, arm and program, one cycle at a time."""

from __future__ import annotations

import logging

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.commands import COMMANDS
from bid_ros.robots.ur.twin.inputs import Inputs
from bid_ros.robots.ur.twin.program import DONE, ControlProgram, ProtectiveStop
from bid_ros.robots.ur.twin.recipes import FieldTable
from bid_ros.robots.ur.twin.robot import Robot
from bid_ros.robots.ur.twin.script_port import ControlScript
from bid_ros.robots.ur.twin.status import POWER_ON_BIT, PROGRAM_RUNNING_BIT, RobotMode, RuntimeState, Status

LOG = logging.getLogger(__name__)


class Machine:
    """What dashboard, pendant, script port and registers act on.

    Args:
        status: the modes.
        robot: the arm.
        inputs, outputs: what RTDE clients write and read.
        period_s: length of a cycle, s.

    Attributes:
        clock_s: controller time since the start, s.
        runtime: state of the program.
    """

    def __init__(self, status: Status, robot: Robot, inputs: Inputs, outputs: FieldTable, period_s: float) -> None:
        self.status = status
        self.robot = robot
        self.inputs = inputs
        self.outputs = outputs
        self.period_s = period_s
        self.clock_s = 0.0
        self.runtime = RuntimeState.STOPPED
        self._program: ControlProgram | None = None
        self._offset = 0  # of the registers of the last program

    @property
    def status_bits(self) -> int:
        """``robot_status_bits`` of RTDE."""
        running = PROGRAM_RUNNING_BIT if self._program is not None else 0
        return running | (POWER_ON_BIT if self.status.powered else 0)

    def run(self, script: ControlScript) -> None:
        """Run an uploaded control script in place of what runs now; refused if the robot cannot move."""
        if not self.status.ready:
            mode, safety = self.status.robot_mode.name, self.status.safety_mode.name
            self.refuse(f"the robot mode is {mode} and the safety mode {safety}; needed are RUNNING and NORMAL")
            return
        self.end_program("another program was started")
        self._program = ControlProgram(script, COMMANDS, self.robot, self.inputs, self.outputs, self.period_s)
        self._offset = script.offset
        self.runtime = RuntimeState.PLAYING

    def refuse(self, reason: str) -> None:
        """Say why an uploaded program does not run."""
        LOG.warning("UR twin: an uploaded program does not run: %s", reason)

    def release_uploader(self) -> None:
        """End ur_rtde's wait for a program of the user's own, which is refused.

        The client has stopped its control script, and waits ten minutes until the registers say that the program is
        done. It then uploads its control script again, and finds that its connection was reset.
        """
        if self._program is None:
            self.outputs.set(f"output_int_register_{self._offset}", DONE)

    def end_program(self, reason: str, level: int = logging.INFO) -> None:
        """End the program, if one runs, and bring the arm to rest; ``level`` is that of the log sentence."""
        if self._program is None:
            return
        LOG.log(level, "UR twin: the program ends: %s", reason)
        self._program = None
        self.runtime = RuntimeState.STOPPING
        self.robot.stop()

    def pause(self) -> bool:
        """Bring the arm to rest on its path and halt the program; return whether one was playing."""
        if self.runtime is not RuntimeState.PLAYING:
            return False
        self.runtime = RuntimeState.PAUSING
        return True

    def play(self) -> bool:
        """Resume a paused program; return whether there was one."""
        if self.runtime not in (RuntimeState.PAUSED, RuntimeState.PAUSING) or not self.status.ready:
            return False
        self.runtime = RuntimeState.PLAYING
        return True

    def protective_stop(self, reason: str) -> None:
        """Stop the arm, end the program and latch the stop until it is unlocked."""
        if self.status.powered:
            self.status.protective_stop(reason, self.clock_s)
            self.end_program("protective stop")
            self.robot.stop()

    def power_off(self) -> None:
        """Close the brakes and switch the motors off; the program ends."""
        self.status.power_off()
        self.end_program("the power is off")

    def emergency_stop(self) -> None:
        """Press the emergency stop."""
        self.status.emergency_stop()
        self.end_program("emergency stop")

    def pass_by(self, seconds: float) -> None:
        """Let the controller's clock run on where nothing else does: cycles that this computer was too slow for."""
        self.clock_s += seconds

    def cycle(self) -> None:
        """Pass one controller cycle: program, motion, arm."""
        dt = self.period_s
        self.clock_s += dt
        self.status.advance(self.clock_s)
        if self._program is not None and self.runtime is RuntimeState.PLAYING:
            self._step_program(self._program)
        self._move(dt)
        self._settle()

    def _step_program(self, program: ControlProgram) -> None:
        try:
            ended = program.step()
        except ProtectiveStop as error:
            self.protective_stop(str(error))
            return
        except ArmError as error:
            self.end_program(str(error), logging.WARNING)
            return
        if ended:
            self.end_program(ended)

    def _move(self, dt: float) -> None:
        if self.status.robot_mode is not RobotMode.RUNNING:
            self.robot.brake(dt)
            return
        try:
            paused = self.runtime in (RuntimeState.PAUSING, RuntimeState.PAUSED)
            self.robot.cycle(dt, self.inputs.speed_slider, paused)
        except ArmError as error:
            self.protective_stop(str(error))

    def _settle(self) -> None:
        if self.runtime is RuntimeState.PAUSING and self.robot.scale == 0.0:
            self.runtime = RuntimeState.PAUSED
        elif self.runtime is RuntimeState.STOPPING and not self.robot.qd.any():
            self.runtime = RuntimeState.STOPPED

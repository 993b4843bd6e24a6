"""ur_rtde's control script, emulated: the register protocol between client and program.

The client writes a command number into an integer input register and its arguments into the others; the script
answers in integer output register 0 (1: ready, 2: done) and leaves results in the other output registers. A servo
command is ready again at once; the others stay done until the client clears the register. The script's threads become
one :class:`ProgramTask` here that may move the arm; a second one that wants to is the error it is on the robot, which
ends the program. So does a command that the twin does not know: a silent success would be a lie.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.fields import FieldTable, Inputs
from bid_ros.robots.ur.twin.joint_motions import RunningMotion
from bid_ros.robots.ur.twin.robot import Robot

# Names of the script's threads and of what its main loop waits for.
SERVO: Final = "servo"
MOVE: Final = "move"
STOP: Final = "stop"

LARGEST: Final = 1e6  # of any number a client gives; products of such numbers stay far from the largest float
READY: Final = 1
DONE: Final = 2
STOP_SCRIPT: Final = 255
# Processed again in every cycle while they stand in the register; the script is ready again at once.
REAL_TIME: Final = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
NO_ANSWER: Final = -1  # neither true nor false, nor a number of time steps
RUNNING: Final = 1 << 15  # of integer output register 2: an asynchronous move or stop is under way
ANSWERS: Final = 6  # double output registers that may hold an answer


@dataclass(frozen=True)
class ProgramTask:
    """Who moves the arm.

    Attributes:
        name: of the script's thread, or of the command the main loop waits for.
        waited_for: the main loop takes no command before it is over.
    """

    name: str
    waited_for: bool


@dataclass
class ControlProgram:
    """One run of the control script.

    Args:
        commands: command number -> what it does with this program.
        robot: the arm it moves.
        inputs, outputs: the registers that clients write and read.
        period_s: length of a cycle, s.
    """

    commands: Mapping[int, Callable[[Any], None]]
    robot: Robot
    inputs: Inputs
    outputs: FieldTable
    period_s: float
    task: ProgramTask | None = None
    _executing: bool = False
    _silent_s: float = 0.0  # of the command register, for the watchdog
    _most_silent_s: float = math.inf
    _register_writes: int = 0

    def __post_init__(self) -> None:
        self._forget_answers()
        self._end_task()
        self.write_int(0, READY)

    def step(self) -> str:
        """Run the script's main loop once; return why it ends, or an empty string.

        Raises:
            ArmError: if the script runs into an error, which ends it as well.
        """
        writes = self.inputs.writes["input_int_register_0"]
        self._silent_s = self._silent_s + self.period_s if writes == self._register_writes else 0.0
        self._register_writes = writes
        if self._silent_s > self._most_silent_s:
            return f"no RTDE input for {self._most_silent_s:.3f} s: the watchdog ends the program"
        self._go_on()
        if self.task is not None and self.task.waited_for:
            return ""
        command = int(self.int_in(0))
        if command == STOP_SCRIPT:
            return "the client stops the script"
        if command in REAL_TIME:
            self._execute(command)
            self.write_int(0, READY)
        elif command == 0:
            self._executing = False
            self.write_int(0, READY)
        elif not self._executing:
            self._executing = True
            self._execute(command)
            if self.task is None or not self.task.waited_for:
                self.write_int(0, DONE)
        return ""

    def int_in(self, number: int) -> float:
        """Integer input register of the script."""
        return self.inputs.get(f"input_int_register_{number}")

    def doubles_in(self, first: int, count: int) -> tuple[float, ...]:
        """``count`` double input registers of the script from ``first`` on; ArmError if one is no number or huge."""
        start = int(self.inputs.places[f"input_double_register_{first}"].start)
        values = tuple(self.inputs.values[start : start + count])
        if not all(abs(value) <= LARGEST for value in values):
            raise ArmError(f"the registers from {first} on hold {values}; valid are numbers up to {LARGEST:.0e}")
        return values

    def write_int(self, number: int, value: int) -> None:
        """Write an integer output register of the script."""
        self.outputs.set(f"output_int_register_{number}", value)

    def begin(self, name: str, motion: RunningMotion, *, asynchronous: bool) -> None:
        """Let a move or stop run: the main loop waits for it, or it runs on its own.

        Raises:
            ArmError: if another thread of the script moves the arm.
        """
        self._need_arm(name)
        self.task = ProgramTask(name, waited_for=not asynchronous)
        self.write_int(2, RUNNING if asynchronous else 0)
        self.robot.start(motion)

    def stream(self, motion: RunningMotion) -> None:
        """Let a servo command replace the one before it; raises ArmError as :meth:`begin`."""
        if self.task is None or self.task.name != SERVO:
            self._need_arm(SERVO)
            self.task = ProgramTask(SERVO, waited_for=False)
        self.robot.start(motion)

    def kill(self, name: str) -> bool:
        """End the thread if it has this name; the arm keeps moving. Return whether it was running."""
        if self.task is None or self.task.name != name:
            return False
        self._end_task()
        return True

    def watch(self, min_frequency: float) -> None:
        """Start the watchdog of the command register.

        Raises:
            ArmError: if the frequency in Hz is not positive.
        """
        if not 0 < min_frequency < float("inf"):
            raise ArmError(f"rtde_set_watchdog: the frequency is {min_frequency} Hz; valid is a positive finite number")
        self._silent_s, self._most_silent_s = 0.0, 1.0 / min_frequency

    def _execute(self, command: int) -> None:
        if command not in self.commands:
            self._forget_answers()
            raise ArmError(
                f"command {command} of ur_rtde is not simulated by the twin; valid are "
                f"{', '.join(map(str, self.commands))}, which the driver gives"
            )
        self.commands[command](self)

    def _forget_answers(self) -> None:
        """Leave nothing in the registers of answers that a client which does not wait could take for measured."""
        self.write_int(1, NO_ANSWER)
        for number in range(ANSWERS):
            self.outputs.set(f"output_double_register_{number}", math.nan)

    def _need_arm(self, name: str) -> None:
        if self.task is not None:
            raise ArmError(f"{name}: another thread is already controlling the robot ({self.task.name})")

    def _go_on(self) -> None:
        """End a move or stop that has come to its end."""
        task = self.task
        if task is not None and task.name != SERVO and self.robot.arrived:
            self._end_task()
            if task.waited_for:
                self.write_int(0, DONE)

    def _end_task(self) -> None:
        self.task = None
        self.write_int(2, 0)

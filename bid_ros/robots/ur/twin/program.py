"""ur_rtde's control script, emulated: the register protocol between client and program.

The client writes a command number into an integer input register and its arguments into the others; the script
answers in integer output register 0 (1: ready, 2: done) and leaves results in the double output registers. Commands
that stream (servo, speed) are ready again at once; the others stay done until the client clears the register. The
script's threads become one :class:`ProgramTask` here that may move the arm; a second one that wants to is the error it
is on the robot, which ends the program.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.fields import FieldTable, Inputs
from bid_ros.robots.ur.twin.joint_motions import RunningMotion
from bid_ros.robots.ur.twin.robot import Robot
from bid_ros.robots.ur.twin.script_port import LARGEST, ControlScript

# Names of the script's threads and of what its main loop waits for.
SERVO: Final = "servo"
SPEED: Final = "speed"
JOG: Final = "jog"
MOVE: Final = "move"
STOP: Final = "stop"
STREAMS: Final = (SERVO, SPEED, JOG)

READY: Final = 1
DONE: Final = 2
STOP_SCRIPT: Final = 255
# Processed again in every cycle while they stand in the register; the script is ready again at once.
REAL_TIME: Final = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
# Integer output register 2: running flag, operation number and number of writes of the last asynchronous command.
RUNNING_BIT: Final = 1 << 15
WRITES_SHIFT: Final = 16
OPERATION_SHIFT: Final = 24
COUNTER_LIMIT: Final = 128
MAX_PROGRESS: Final = 32_767
NO_ANSWER: Final = -1  # neither true nor false, nor a number of time steps

Command: TypeAlias = Callable[["ControlProgram"], None]


class ProtectiveStop(ArmError):
    """A command of the script asks for a protective stop, which halts the script within the command."""


@dataclass
class ProgramTask:
    """Who moves the arm.

    Attributes:
        name: of the script's thread, or of the command the main loop waits for.
        motions: what is left of it, one after the other.
        waited_for: the main loop takes no command before it is over.
    """

    name: str
    motions: Iterator[RunningMotion]
    waited_for: bool

    @property
    def reports(self) -> bool:
        """Whether its end is written into the progress register."""
        return not self.waited_for and self.name not in STREAMS


@dataclass
class ControlProgram:
    """One run of the control script.

    Args:
        script: what was uploaded.
        commands: command number -> what it does.
        robot: the arm it moves.
        inputs, outputs: the registers that clients write and read.
        period_s: length of a cycle, s.
    """

    script: ControlScript
    commands: Mapping[int, Command]
    robot: Robot
    inputs: Inputs
    outputs: FieldTable
    period_s: float
    task: ProgramTask | None = None
    speeds_are_linear: bool = True
    stop_is_linear: bool = False  # the script's stop_type, which its first asynchronous stop sets for good
    _executing: bool = False
    _writes: int = 0
    _operation: int = 0
    _silent_s: float = 0.0  # of the command register, for the watchdog
    _most_silent_s: float = math.inf
    _register_writes: int = 0

    def __post_init__(self) -> None:
        self._write_progress(0)
        self.forget_answers()
        self.write_int(0, READY)

    def step(self) -> str:
        """Run the script's main loop once; return why it ends, or an empty string.

        Raises:
            ProtectiveStop: if the script asks for one.
            ArmError: if the script runs into an error, which ends it as well.
        """
        writes = self.inputs.writes[f"input_int_register_{self.script.offset}"]
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
            self.commands[command](self)
            self.write_int(0, READY)
        elif command == 0:
            self._executing = False
            self.write_int(0, READY)
        elif not self._executing:
            self._executing = True
            if command in self.commands:
                self.commands[command](self)
            if self.task is None or not self.task.waited_for:
                self.write_int(0, DONE)
        return ""

    def int_in(self, number: int) -> float:
        """Integer input register of the script."""
        return self.inputs.get(f"input_int_register_{number + self.script.offset}")

    def doubles_in(self, first: int, count: int) -> tuple[float, ...]:
        """``count`` double input registers of the script from ``first`` on; ArmError if one is no number or huge."""
        start = int(self.inputs.places[f"input_double_register_{first + self.script.offset}"].start)
        values = tuple(self.inputs.values[start : start + count])
        if not all(abs(value) <= LARGEST for value in values):
            raise ArmError(f"the registers from {first} on hold {values}; valid are numbers up to {LARGEST:.0e}")
        return values

    def write_int(self, number: int, value: int) -> None:
        """Write an integer output register of the script."""
        self.outputs.set(f"output_int_register_{number + self.script.offset}", value)

    def write_doubles(self, values: Iterable[float]) -> None:
        """Write double output registers of the script from 0 on."""
        for number, value in enumerate(values):
            self.outputs.set(f"output_double_register_{number + self.script.offset}", float(value))

    def forget_answers(self) -> None:
        """Leave nothing in the registers of answers that a client which does not wait could take for measured."""
        self.write_int(1, NO_ANSWER)
        self.write_doubles([math.nan] * 6)

    def begin(self, name: str, motions: Iterator[RunningMotion], *, asynchronous: bool) -> None:
        """Let a move or stop run: the main loop waits for it, or it runs on its own and reports its progress.

        Raises:
            ArmError: if another thread of the script moves the arm.
        """
        self._need_arm(name)
        self.task = ProgramTask(name, motions, waited_for=not asynchronous)
        if asynchronous:
            self.report(0)
        self._next_motion(self.task)

    def stream(self, name: str, motion: RunningMotion) -> None:
        """Let a servo or speed command replace the one before it; raises ArmError as :meth:`begin`."""
        if self.task is None or self.task.name != name:
            self._need_arm(name)
            self.task = ProgramTask(name, iter(()), waited_for=False)
        self.robot.start(motion)

    def kill(self, *names: str) -> bool:
        """End the thread if it has one of these names; the arm keeps moving. Return whether it was running."""
        if self.task is None or self.task.name not in names:
            return False
        reports = self.task.reports
        self.task = None
        if reports:
            self._write_progress(0)
        return True

    def report(self, progress: int) -> None:
        """Write the progress of an asynchronous command; 0 also means that a new one has begun."""
        if progress == 0:
            self._operation = (self._operation + 1) % COUNTER_LIMIT
        self._write_progress(RUNNING_BIT + min(progress, MAX_PROGRESS))

    def watch(self, min_frequency: float) -> None:
        """Start the watchdog of the command register.

        Raises:
            ArmError: if the frequency in Hz is not positive.
        """
        if not 0 < min_frequency < float("inf"):
            raise ArmError(f"rtde_set_watchdog: the frequency is {min_frequency} Hz; valid is a positive finite number")
        self._silent_s, self._most_silent_s = 0.0, 1.0 / min_frequency

    def _write_progress(self, value: int) -> None:
        self._writes = (self._writes + 1) % COUNTER_LIMIT
        self.write_int(2, (self._operation << OPERATION_SHIFT) + (self._writes << WRITES_SHIFT) + value)

    def _need_arm(self, name: str) -> None:
        if self.task is not None:
            raise ArmError(f"{name}: another thread is already controlling the robot ({self.task.name})")

    def _go_on(self) -> None:
        """Start the next motion of a move that has come to its end, or end the move."""
        task = self.task
        if task is not None and task.name not in STREAMS and self.robot.arrived:
            self._next_motion(task)

    def _next_motion(self, task: ProgramTask) -> None:
        motion = next(task.motions, None)
        if motion is not None:
            self.robot.start(motion, follows_slider=task.name != STOP)
            return
        self.task = None
        if task.waited_for:
            self.write_int(0, DONE)
        if task.reports:
            self._write_progress(0)

"""The loop of a process that owns a robot's connection: judges the robot, drives it, and answers the arm."""

import gc
import os
import select
import threading
import time
import traceback
from abc import ABC, abstractmethod
from multiprocessing.connection import Connection
from typing import Any, Final

from bid_ros.core.fault_words import DRIVER
from bid_ros.core.margins import Margins
from bid_ros.core.schedule import AbsoluteSchedule
from bid_ros.robots.protocol import (
    EXIT_LOST,
    EXIT_STUCK,
    DriverMemory,
    DriverRequest,
    DriverState,
    Mode,
    MotionOutcome,
    TimedJoints,
    TimedSetpoint,
)
from bid_ros.robots.unheard import Unheard

# If a period takes longer than this, s, or than a limit of its own, the robot is lost. Its watchdog has stopped it by
# then.
STUCK_S: Final = 0.5
GUARD_S: Final = 0.02
LONGEST_ERROR: Final = 160  # characters
# The owner of this process is gone and the arm does not come to rest: end without it.
ORPHAN_S: Final = 1.5
# Periods between two records of the margins, which nobody waits for.
MARGINS_EVERY: Final = 128


class DriverLoop(ABC):
    """Runs the loop: drive the robot, look at it, answer requests, publish the state.

    Args:
        address: of the robot, for errors.
        rate_hz: periods a second.
        memory: takes set-points in and states out.
        requests: requests from the arm. When it closes, this process ends.
        stuck_s: longest period, s. Below the time without a beat after which the arm ends this process, so that this
            process can say why.
    """

    def __init__(
        self, address: str, rate_hz: int, memory: DriverMemory, requests: Connection, stuck_s: float = STUCK_S
    ) -> None:
        self._memory, self._stuck_s = memory, stuck_s
        self._requests, self._waiting = requests, select.poll()
        self._waiting.register(requests, select.POLLIN)
        self._period_ns = round(1e9 / rate_hz)
        self._mode = Mode.IDLE
        self._outcome = MotionOutcome.NONE
        self._fault = ""
        self._usable = True
        self._ending = False
        self._taken = self._beat = self._skipped = 0
        self._ending_ns = 0
        self._where, self._driver = f"robot at {address}", f"{DRIVER} at {address}"
        self._beat_ns = time.monotonic_ns()

    def run(self) -> None:
        """Run until the arm requests the end or is gone. Then leave the robot at rest.

        An error that nobody expected ends the process at once: Python's own end would wait for a library whose threads
        still drive the robot.
        """
        try:
            self._run()
        except BaseException as error:
            traceback.print_exc()
            what = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_ERROR]
            try:
                self._lose(f"{self._driver} ended by an error of its own ({what}): reset")
            finally:
                os._exit(EXIT_LOST)

    def _run(self) -> None:
        gc.freeze()
        threading.Thread(target=self._guard, name="guard", daemon=True).start()
        schedule = AbsoluteSchedule(self._period_ns, time.monotonic_ns(), self._period_ns)
        while not (self._ending and self._finished()):
            wait = schedule.due_ns - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            now = time.monotonic_ns()
            tick = schedule.take(now)
            if tick is not None:
                self._beat_ns = now
                self._skipped = schedule.skipped
                self.tick(now)
        if self._usable:
            self._leave()

    def tick(self, now_ns: int) -> None:
        """Do the work of one period that begins at ``now_ns``, steady nanoseconds. :meth:`run` calls it."""
        if self._usable:
            self._drive(now_ns)
        self._look(now_ns)
        self._beat += 1
        self._publish()
        if self._beat % MARGINS_EVERY == 0:
            self._memory.write_margins(self._margins())
        if not self._ending and self._waiting.poll(0):
            self._serve(now_ns)

    @abstractmethod
    def _drive(self, now_ns: int) -> None:
        """Do what the mode demands."""

    @abstractmethod
    def _look(self, now_ns: int) -> None:
        """Judge the robot, by its newest state."""

    @abstractmethod
    def _stop(self) -> None:
        """Begin to bring the arm to rest, if it is driven."""

    @abstractmethod
    def _begin(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        """Begin what an idle robot without a fault is asked for; return the answer, None if it follows later."""

    @abstractmethod
    def _forget(self) -> None:
        """Drive the robot no more."""

    @abstractmethod
    def _leave(self) -> None:
        """Leave the robot, at rest."""

    @abstractmethod
    def _state(self) -> DriverState:
        """Return what is known of the robot."""

    @abstractmethod
    def _margins(self) -> Margins:
        """Return how near the robot came to the limits of the checks."""

    def _newest(self) -> TimedSetpoint | TimedJoints | None:
        """Return a set-point that came since the last call. A request to brake stops the arm."""
        record = self._memory.setpoint.read()
        if record is None or record[0] == self._taken:
            return None
        self._taken, setpoint = record
        if setpoint is None:
            self._stop()
            return None
        found: TimedSetpoint | TimedJoints = setpoint
        return found

    def _skip_old(self) -> None:
        """Take no set-point that was given before now."""
        record = self._memory.setpoint.read()
        self._taken = 0 if record is None else record[0]

    def _finished(self) -> bool:
        late = self._beat_ns - self._ending_ns > ORPHAN_S * 1e9
        return self._mode is Mode.IDLE or not self._usable or late

    def _disable(self, reason: str) -> None:
        """Latch a fault of the robot and send nothing more, so that its own watchdog stops it."""
        self._tell(reason)
        self._usable = False
        self._mode = Mode.IDLE
        self._memory.write_margins(self._margins())
        self._forget()

    def _tell(self, reason: str) -> None:
        """Latch a fault and let the arm know, before a library is asked for anything: it may not answer."""
        self._fault = self._fault or reason
        self._publish()

    def _lose(self, reason: str) -> None:
        """Latch that the robot is lost, and end at once: a library may connect again by itself."""
        self._disable(reason)
        self._publish()
        os._exit(EXIT_LOST)

    def _serve(self, now_ns: int) -> None:
        try:
            request, *arguments = self._requests.recv()
            answer = self._answer(now_ns, request, *arguments)
            self._publish()
            if answer is not None:
                self._requests.send(answer)
        except (EOFError, OSError):
            self._end(now_ns)

    def _answer(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        if request is DriverRequest.CLEAR:
            return self._clear()
        if request is DriverRequest.CLOSE:
            self._end(now_ns)
        elif request is DriverRequest.STOP:
            self._stop()
        elif self._fault or self._mode is not Mode.IDLE:
            return self._fault or f"{self._where} is busy; stop it first"
        else:
            return self._begin(now_ns, request, *arguments)
        return ""

    def _clear(self) -> object:
        """Forget a fault that does not last; return what lasts, or None if the answer follows later."""
        if self._usable and self._mode is Mode.IDLE:
            self._fault = ""
        return self._fault

    def _end(self, now_ns: int) -> None:
        self._ending, self._ending_ns = True, now_ns
        self._stop()

    def _publish(self) -> None:
        self._memory.write_state(self._state())

    def _guard(self) -> None:
        """End the process when the loop hangs in the library, and not when the computer holds up all of it."""
        beats = Unheard(self._stuck_s)
        while beats.look(self._beat_ns, time.monotonic_ns()) < beats.limit_s:
            time.sleep(GUARD_S)
        os._exit(EXIT_STUCK)

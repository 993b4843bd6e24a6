"""Absolute schedules: tick k is due at start + k * period, however late tick k - 1 was."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bid_ros.core.clocks import read_clocks


@dataclass(frozen=True)
class Tick:
    """One tick of a schedule.

    Attributes:
        index: number of the tick on the grid.
        due_ns: steady time at which it was due.
        late_ns: delay of its start after ``due_ns``.
        skipped: ticks that were left out just before it because they would have started too late.
    """

    index: int
    due_ns: int
    late_ns: int
    skipped: int


class AbsoluteSchedule:
    """Grid of instants ``start_ns + k * period_ns`` on a steady clock. Late ticks are skipped, never queued.

    Args:
        period_ns: grid spacing, positive.
        start_ns: instant of tick 0.
        tolerance_ns: lateness above which a tick is skipped and counted.
    """

    def __init__(self, period_ns: int, start_ns: int, tolerance_ns: int) -> None:
        if period_ns <= 0:
            raise ValueError(f"period is {period_ns} ns; valid is a positive time")
        self._period_ns = period_ns
        self._start_ns = start_ns
        self._tolerance_ns = tolerance_ns
        self._next = 0
        self.skipped = 0

    @property
    def due_ns(self) -> int:
        """Steady time at which the next tick is due."""
        return self._start_ns + self._next * self._period_ns

    def take(self, now_ns: int) -> Tick | None:
        """Return the tick to run at ``now_ns``. None: no tick is due yet, or the due ticks came too late."""
        skipped = 0
        while now_ns - self.due_ns > self._tolerance_ns:
            self._next += 1
            skipped += 1
        self.skipped += skipped
        if now_ns < self.due_ns:
            return None
        tick = Tick(self._next, self.due_ns, now_ns - self.due_ns, skipped)
        self._next += 1
        return tick


def phase_aligned_start(period_ns: int, phase_ns: int, wall_ns: int, steady_ns: int) -> int:
    """Return the next steady instant whose wall time is ``phase_ns`` after a multiple of ``period_ns``.

    Nodes that align to wall time share one grid without exchanging messages.
    """
    wait = (phase_ns - wall_ns) % period_ns
    return steady_ns + wait


def is_fresh(complete_ns: int, now_ns: int, period_ns: int) -> bool:
    """Whether to decide on these frames now, or to wait for the next ones.

    If the frames are older than half a period, wait: the next pair arrives sooner. Otherwise all later decisions would
    be one frame behind.

    Args:
        complete_ns: steady time at which the frames were complete.
        now_ns: steady time.
        period_ns: period of the cameras and of the decisions.
    """
    return now_ns - complete_ns <= period_ns // 2


class PeriodicThread:
    """Runs a callback on an absolute schedule in a thread of its own. Other callbacks cannot delay it.

    Args:
        name: thread name.
        period_ns: period.
        callback: called with each tick. An exception stops the thread and goes to ``on_error``.
        phase_ns: offset of the grid from multiples of the period in wall time.
        tolerance_ns: lateness above which a tick is skipped; default one period.
        on_error: called once, with the exception that ended the thread.
    """

    def __init__(
        self,
        name: str,
        period_ns: int,
        callback: Callable[[Tick], None],
        phase_ns: int = 0,
        tolerance_ns: int | None = None,
        on_error: Callable[[BaseException], None] | None = None,
    ) -> None:
        start = phase_aligned_start(period_ns, phase_ns, *read_clocks())
        self.schedule = AbsoluteSchedule(period_ns, start, period_ns if tolerance_ns is None else tolerance_ns)
        self._callback = callback
        self._on_error = on_error
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread after the tick in progress, and wait for the thread."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                wait = self.schedule.due_ns - time.monotonic_ns()
                if wait > 0:
                    time.sleep(wait / 1e9)
                tick = self.schedule.take(time.monotonic_ns())
                if tick is not None and not self._stop.is_set():
                    self._callback(tick)
        except BaseException as error:
            if self._on_error is None:
                raise
            self._on_error(error)

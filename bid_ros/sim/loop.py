"""The thread that steps a twin in real time, and runs requested work between two steps."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from bid_ros.core.errors import ArmError

ANSWER_TIMEOUT_S: Final = 2.0
# A decision of the policy keeps both cores of a small computer busy for 10 to 30 ms. What a twin could not do in that
# time it does right after, unless that is more.
CATCH_UP_NS: Final = 20_000_000
Result = TypeVar("Result")


class StepLoop:
    """Calls ``step`` once a period, on an absolute schedule of the steady clock.

    It catches up with a backlog of up to ``catch_up_ns``. A larger backlog is skipped and counted.

    Args:
        what: name in errors, for example ``the UR twin``.
        period_ns: period of a step.
        step: one step. An exception ends the loop.
        left_out: called with the ns of a skipped backlog.
        failed: called in the loop's thread when a step raised.
        catch_up_ns: largest backlog that is caught up.
    """

    def __init__(
        self,
        what: str,
        period_ns: int,
        step: Callable[[], None],
        left_out: Callable[[int], None] = lambda late_ns: None,
        failed: Callable[[], None] = lambda: None,
        catch_up_ns: int = CATCH_UP_NS,
    ) -> None:
        self._what, self._period_ns, self._step, self._catch_up_ns = what, period_ns, step, catch_up_ns
        self._left_out, self._failed = left_out, failed
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)
        self._failure: BaseException | None = None
        self._steps = self._overruns = self._lost_ns = self._longest_ns = 0
        self._marks: deque[tuple[int, int]] = deque(maxlen=6)

    def start(self) -> None:
        """Begin to step."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current step. A second call does nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(ANSWER_TIMEOUT_S)

    def check(self) -> None:
        """Raise ArmError unless the loop runs."""
        if self._failure is not None:
            raise ArmError(f"{self._what} has ended: {self._failure}") from self._failure
        if not self._thread.is_alive():
            raise ArmError(f"{self._what} does not run; start it first")

    def call(self, work: Callable[[], Result]) -> Result:
        """Run ``work`` between two steps in the loop's thread and return what it returns.

        Raises:
            ArmError: the loop does not run, or does not answer in time. Errors of ``work`` are passed on.
        """
        self.check()
        done: Future[Result] = Future()

        def answer() -> None:
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

        self._work.put(answer)
        try:
            return done.result(ANSWER_TIMEOUT_S)
        except FutureTimeout as error:
            self.check()  # the loop may have ended before this; then it knows why
            raise ArmError(f"{self._what} did not answer within {ANSWER_TIMEOUT_S:.0f} s") from error

    def statistics(self) -> dict[str, float]:
        """Return how well the loop keeps real time.

        ``real_time_factor`` over the last 5 s (1 is real time), ``overruns``: number of skipped backlogs,
        ``lost_s``: their sum, ``longest_gap_ms``: the longest of them, ``steps`` since the start. What a client calls
        silence and is no longer than that gap was this computer's.
        """
        marks, factor = list(self._marks), 1.0
        if marks:
            (then_ns, then_steps), steps = marks[0], self._steps
            elapsed = time.monotonic_ns() - then_ns
            factor = (steps - then_steps) * self._period_ns / elapsed if elapsed > 0 else 1.0
        counts: dict[str, float] = {"overruns": self._overruns, "steps": self._steps}
        lost = {"lost_s": self._lost_ns / 1e9, "longest_gap_ms": self._longest_ns / 1e6}
        return {"real_time_factor": factor, **lost, **counts}

    def _run(self) -> None:
        due, every = time.monotonic_ns(), max(1, 1_000_000_000 // self._period_ns)
        try:
            while not self._stop.is_set():
                due = self._wait_for(due)
                if self._steps % every == 0:
                    self._marks.append((time.monotonic_ns(), self._steps))
                while not self._work.empty():
                    self._work.get_nowait()()
                self._step()
                self._steps += 1
        except Exception as error:
            self._failure = error
            self._failed()
            raise

    def _wait_for(self, due_ns: int) -> int:
        """Sleep until a step is due. Return the time of the next one."""
        late_ns = time.monotonic_ns() - due_ns
        if late_ns < 0:
            time.sleep(-late_ns / 1e9)
        elif late_ns > self._catch_up_ns:
            self._overruns += 1
            self._lost_ns += late_ns
            self._longest_ns = max(self._longest_ns, late_ns)
            self._left_out(late_ns)
            due_ns += late_ns
        return due_ns + self._period_ns

"""The heartbeat of a node: a thread of its own sends it, as long as the node's work goes on."""

import time
from collections.abc import Callable
from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.schedule import PeriodicThread, Tick
from bid_ros.system.priority import raise_thread_priority

PERIOD_S: Final = 0.05
RARE_S: Final = 0.5  # for nodes that are only waited for in the beginning
PRIORITY: Final = 10  # steps of niceness above the node: a busy computer must not look like a dead node


class HeartbeatThread(PeriodicThread):
    """Sends a heartbeat every 50 ms, or another period, while the work of a node is younger than a limit.

    A heartbeat proves two things: the process runs, and its work made a step within the last ``limit_s``. Whoever
    watches adds its own deadline. The thread needs the interpreter for microseconds. So a long decision or a loaded
    computer does not delay it, and deadlines can stay short.

    Args:
        send: publishes one heartbeat; takes the age of the work in s.
        limit_s: the heartbeat pauses while the last step of the work is older than this, s. It may be changed.
        period_s: s between two heartbeats.
    """

    def __init__(self, send: Callable[[float], None], limit_s: float, period_s: float = PERIOD_S) -> None:
        super().__init__("heartbeat", round(period_s * NANOSECONDS), self._tick)
        self._send = send
        self.limit_s = limit_s
        self._worked_ns: int | None = None

    def worked(self) -> None:
        """Note a step of the work. The first one begins the heartbeats. Any thread may call it."""
        self._worked_ns = time.monotonic_ns()

    def failed(self) -> None:
        """Note that the work failed: no heartbeat until its next step. Any thread may call it."""
        self._worked_ns = None

    def _run(self) -> None:
        raise_thread_priority(PRIORITY)
        super()._run()

    def _tick(self, _: Tick) -> None:
        worked_ns = self._worked_ns
        if worked_ns is None:
            return
        age_s = (time.monotonic_ns() - worked_ns) / NANOSECONDS
        if age_s <= self.limit_s:
            self._send(max(0.0, age_s))

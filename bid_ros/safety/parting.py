"""How a safety node ends: it waits for the last word of the arm node, and says so if there is none."""

from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.safety.watchdog import State, Watchdog

ARM: Final = "arm"
PARTING_S: Final = 0.6
"""Longest wait for the arm node, s: twice the silence that its deadline allows."""


class Parting:
    """Watches the arm node alone, while all other nodes end.

    An arm node that dies together with the supervisor says nothing, and every other node ends with the supervisor. So
    the safety node is the last that can say why the arm stopped.

    Args:
        watchdog: of the safety node.
        steady_ns: when the safety node was asked to end.
        watched: whether the heartbeat of the arm node is required, and it has not said its last word yet.

    Attributes:
        over: whether nothing is left to wait for. True from the beginning if nothing was moving the arm.
    """

    def __init__(self, watchdog: Watchdog, steady_ns: int, watched: bool) -> None:
        self._watchdog, self._end_ns = watchdog, steady_ns + round(PARTING_S * NANOSECONDS)
        self.over = not (watched and watchdog.granted and watchdog.state is State.RUNNING)
        if not self.over:
            watchdog.keep(ARM)

    def tick(self, steady_ns: int) -> bool:
        """Look for the arm node's heartbeat. Return True if its silence has just latched a stop."""
        if self.over:
            return False
        stopped_now = self._watchdog.tick(steady_ns)
        self.over = self._watchdog.stopped or steady_ns >= self._end_ns
        return stopped_now

"""How long something has been silent, counted only while the listener itself ran."""

import threading
from typing import Final

from bid_ros.core.chunk import NANOSECONDS

# A look counts as at most this much silence, ns. A listener that was held up itself cannot say that nothing came.
MOST_NS: Final = 30_000_000
# A twin that nothing moves cannot move. A computer that starts a system, or does much else, may hold it up for so long,
# s: beside a test suite, with priorities of its own, it did for 1.4 s.
RESTING_TWIN_S: Final = 2.0
_TWIN: Final = "it is a twin, so find what keeps this computer busy"  # holds fault_words.BUSY


class Unheard:
    """Measures a silence by looks at a number that changes with each sign of life. Any thread may look.

    A listener that looks every 10 ms counts all of the time. If the computer holds up listener and speaker together for
    a second, that second is no silence of the speaker: the next look finds what it said.

    Args:
        limit_s: silence that is valid, s.

    Attributes:
        limit_s: as given.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._lock = threading.Lock()
        self._newest: object = None
        self._looked_ns: int | None = None
        self._silence_ns = 0

    def look(self, newest: object, now_ns: int) -> float:
        """Look at the newest number at ``now_ns`` of a steady clock, and return the silence so far in s."""
        with self._lock:
            passed = 0 if self._looked_ns is None else max(0, now_ns - self._looked_ns)
            self._looked_ns = now_ns
            self._silence_ns = 0 if newest != self._newest else self._silence_ns + min(passed, MOST_NS)
            self._newest = newest
            return self._silence_ns / NANOSECONDS


def late_text(what: str, look: str, twin: bool) -> str:
    """Return how a robot, or a twin, is late, and what to look for: ``look`` at a robot."""
    return f"{what}: {_TWIN if twin else look}"

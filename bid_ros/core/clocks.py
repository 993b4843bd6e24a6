"""The two clocks of this computer, read at one instant; and whether somebody set the wall clock.

The steady clock measures how long something took. The wall clock stamps messages, and other computers have one too.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from bid_ros.core.chunk import NANOSECONDS

# Between two steady readings lies the one of the wall clock. So near to each other they are one instant, ns; a thread
# that is held up in between reads again, so many times. The nearest readings count.
NEAR_NS: Final = 20_000
TRIES: Final = 8
# A time service pulls a clock by less than 1 ms/s. A step that is larger than this, ns, was made at once.
JUMP_NS: Final = 20_000_000
# A stamp further ahead of now than this, ns, is not explained by a delay. One further behind comes so late that no
# computer that still works delays it: one of two clocks was set.
AHEAD_NS: Final = NANOSECONDS // 2
BEHIND_NS: Final = 5 * NANOSECONDS
# Stamps of one sender that go back by more than this, ns, are not out of order: its clock was set back.
SET_BACK_NS: Final = NANOSECONDS


class Instant(NamedTuple):
    """One instant on both clocks, ns: since 1970, and on a steady clock."""

    wall_ns: int
    steady_ns: int


def read_clocks(wall: Callable[[], int] | None = None) -> Instant:
    """Return both clocks, read at one instant.

    A thread that is held up between two readings would make a message seem older or newer than it is, by as long as it
    was held up.

    Args:
        wall: the wall clock, ns; None: that of this computer.
    """
    nearest, found, wall = -1, Instant(0, 0), wall or time.time_ns
    for _ in range(TRIES):
        before, now, after = time.monotonic_ns(), wall(), time.monotonic_ns()
        if nearest < 0 or after - before < nearest:
            nearest, found = after - before, Instant(now, (before + after) // 2)
        if nearest <= NEAR_NS:
            break
    return found


class ClockWatch:
    """Notices that somebody set the wall clock of this computer.

    Args:
        first: a reading.
    """

    def __init__(self, first: Instant) -> None:
        self._ahead_ns = first.wall_ns - first.steady_ns

    def jumped_ns(self, now: Instant) -> int:
        """Return by how much the wall clock was set since the last look, in ns; 0 if it was not."""
        before_ns, self._ahead_ns = self._ahead_ns, now.wall_ns - now.steady_ns
        jump_ns = self._ahead_ns - before_ns
        return jump_ns if abs(jump_ns) > JUMP_NS else 0


def jump_text(jump_ns: int) -> str:
    """Return one sentence on a clock of this computer that was set."""
    where = "forward" if jump_ns > 0 else "back"
    return f"the clock of this computer was set {where} by {abs(jump_ns) / NANOSECONDS:.1f} s"


def foreign_stamp(what: str, stamp_ns: int, now_ns: int) -> str:
    """Return one sentence if a stamp cannot be of this computer's clock; empty if it can.

    Args:
        what: what carries the stamp, such as ``images of 'wrist'``.
        stamp_ns: its stamp, ns since 1970.
        now_ns: wall time now, ns since 1970.
    """
    ahead_ns = stamp_ns - now_ns
    if ahead_ns > AHEAD_NS:
        why = "the clock of one of the two computers was set"
        return f"{what} are stamped {ahead_ns / NANOSECONDS:.1f} s ahead of this computer's clock: {why}"
    if ahead_ns < -BEHIND_NS:
        why = "the clock of one of the two computers was set, or they come that late"
        return f"{what} are stamped {-ahead_ns / NANOSECONDS:.1f} s behind this computer's clock: {why}"
    return ""


def newer(stamp_ns: int, last_ns: int) -> bool:
    """Whether a stamp is newer than the last one of the same sender, or its clock was set back meanwhile."""
    return stamp_ns > last_ns or stamp_ns < last_ns - SET_BACK_NS

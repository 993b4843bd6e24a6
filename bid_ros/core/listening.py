"""Tells a silence of other nodes from a hold-up of this process, during which it did not listen."""

from typing import Final

HELD_UP_NS: Final = 50_000_000  # a longer time in which this process does nothing is a hold-up
GRACE_NS: Final = 100_000_000  # after it, in which what waits may still be heard
REST_NS: Final = 200_000_000  # after that, in which silence counts however often the process is held up


class Listening:
    """Says up to which time a node may judge the silence of others.

    A busy computer holds up whole processes. When a process goes on, messages that arrived meanwhile still wait in the
    middleware and in its socket, and the judge of silence may run before they are taken. So for a moment after a
    hold-up, silence is judged only up to the last time at which messages were taken. It reads no clock: every time is a
    steady one in integer nanoseconds.
    """

    def __init__(self) -> None:
        self._heard_ns = self._ran_ns = self._until_ns = 0

    def heard(self, steady_ns: int) -> None:
        """Note that all messages that had arrived at ``steady_ns`` were taken."""
        if not self._waits(steady_ns):
            self._heard_ns = steady_ns

    def judged_ns(self, steady_ns: int) -> int:
        """Return the time at which silence is to be judged now, ``steady_ns`` or before. Call it at each look."""
        return self._heard_ns if self._waits(steady_ns) else steady_ns

    def _waits(self, steady_ns: int) -> bool:
        """Whether messages of a hold-up may still be on their way."""
        held_up = self._heard_ns and steady_ns - self._ran_ns > HELD_UP_NS
        if held_up and steady_ns > self._until_ns + REST_NS:
            self._until_ns = steady_ns + GRACE_NS
        self._ran_ns = steady_ns
        return steady_ns < self._until_ns

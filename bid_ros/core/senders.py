"""Tells whether messages under one name come from one sender or from two, by the numbers that each counts up."""

from collections import defaultdict, deque
from typing import Final

from bid_ros.core.chunk import NANOSECONDS

# So many numbers that step back within so many s: a sender that was started anew steps back once.
BACK: Final = 3
WITHIN_S: Final = 1.0
# A node that ends and is started anew, and then counts from 1, is silent for longer than this, s.
ANEW_S: Final = 0.5
# So many messages a publisher sends at most, a second. So many more may be lost at once.
FASTEST_HZ: Final = 1000
LOST: Final = 50


class Senders:
    """Finds two senders of one name: each counts up on its own, so the numbers of both together step back.

    A sender that imitates the numbers too is not found. It reads no clock; times are steady, in integer nanoseconds.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._back_ns: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=BACK))

    def take(self, name: str, number: int, steady_ns: int) -> None:
        """Take the number of a message under ``name``."""
        if number < self._newest.get(name, number):
            self._back_ns[name].append(steady_ns)
        self._newest[name] = number

    def doubled(self, steady_ns: int) -> str:
        """Return a name that has had two senders within the last second; empty: none has."""
        since_ns = steady_ns - round(WITHIN_S * NANOSECONDS)
        return next((name for name, at in self._back_ns.items() if len(at) == BACK and at[0] > since_ns), "")

    def names(self) -> frozenset[str]:
        """Return every name so far."""
        return frozenset(self._newest)


class SoleSender:
    """Refuses the messages of a second publisher of one topic, from its first one on.

    The middleware numbers the messages of each publisher. On a busy computer it takes a second to report a second
    publisher. While the first publisher is alive, a message whose number does not go on from the last one is from the
    second publisher: the number is not higher, or higher than the first publisher can have got. After a silence of
    ``ANEW_S`` any number is taken, for a node that was restarted. It reads no clock; times are steady, in integer
    nanoseconds.
    """

    def __init__(self) -> None:
        self._newest, self._at_ns, self._refused_ns = 0, -NANOSECONDS, -NANOSECONDS

    def admits(self, number: int | None, steady_ns: int) -> bool:
        """Return whether a message counts on; ``number`` is the middleware's, None if it gives none."""
        if number is None:
            return True
        passed_s = (steady_ns - self._at_ns) / NANOSECONDS
        if passed_s < ANEW_S and not self._newest < number <= self._newest + LOST + FASTEST_HZ * passed_s:
            self._refused_ns = steady_ns
            return False
        self._newest, self._at_ns = number, steady_ns
        return True

    def doubled(self, steady_ns: int) -> bool:
        """Return whether a message was refused within the last second."""
        return steady_ns - self._refused_ns < round(WITHIN_S * NANOSECONDS)

"""Heartbeat deadlines: which of several senders has been silent for too long.

The arm node and the safety node share this class. It has no threads and reads no clock, so a test can play any
silence. Pass times of a steady clock: setting a wall clock would disarm it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bid_ros.core.checks import check_positive
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.margins import Margins


@dataclass(frozen=True)
class Expired:
    """A sender that has been silent for longer than its limit.

    Attributes:
        name: sender of the missing heartbeat.
        age_s: s since its last heartbeat, or since :meth:`Deadlines.arm` if there was none.
        limit_s: allowed silence in s.
    """

    name: str
    age_s: float
    limit_s: float

    def __str__(self) -> str:
        return f"heartbeat of {self.name} is {1000 * self.age_s:.0f} ms old; the limit is {1000 * self.limit_s:.0f} ms"


class Deadlines:
    """Time since the last heartbeat of each sender, compared with its own limit.

    A sender that was never heard does not expire until :meth:`arm` starts the time of all senders. So nodes can start
    in any order, and once work begins every sender has a deadline.

    Args:
        limits: allowed silence in s of each sender, positive and finite.

    Attributes:
        limits: the same, of every sender that is still watched.

    Raises:
        ValueError: there is no sender, or a limit is not a positive finite number.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        if not limits:
            raise ValueError("deadlines: no name is watched; valid is one or more")
        for name, limit in limits.items():
            check_positive("deadlines", f"the limit of '{name}'", limit, ValueError, "s")
        self.limits = dict(limits)
        self._last: dict[str, int] = {}
        self._armed_ns: int | None = None

    def beat(self, name: str, steady_ns: int) -> None:
        """Note a heartbeat of ``name`` at ``steady_ns``. An instant before the last heartbeat changes nothing.

        Raises:
            KeyError: ``name`` has no deadline.
        """
        if name not in self.limits:
            raise KeyError(f"deadlines: '{name}' is not watched; valid are {', '.join(self.limits)}")
        self._last[name] = max(steady_ns, self._last.get(name, steady_ns))

    def keep(self, name: str) -> None:
        """Watch ``name`` alone from now on.

        Raises:
            KeyError: ``name`` has no deadline.
        """
        self.limits = {name: self.limits[name]}

    def arm(self, steady_ns: int) -> None:
        """Count a sender that was never heard as heard at ``steady_ns``."""
        self._armed_ns = steady_ns

    def ages(self, steady_ns: int) -> dict[str, float]:
        """Return the silence in s of each sender that was heard or armed. It is never negative."""
        starts = {name: self._last.get(name, self._armed_ns) for name in self.limits}
        return {name: max(0, steady_ns - start) / NANOSECONDS for name, start in starts.items() if start is not None}

    def note(self, margins: Margins, steady_ns: int) -> None:
        """Note in ``margins`` how near the silence of each sender is to its limit at ``steady_ns``."""
        for name, age_s in self.ages(steady_ns).items():
            margins.over(f"heartbeat of {name}", age_s, self.limits[name])

    def expired(self, steady_ns: int) -> Expired | None:
        """Return the sender that is furthest over its limit at ``steady_ns``, None if none is over."""
        late = [
            Expired(name, age, self.limits[name])
            for name, age in self.ages(steady_ns).items()
            if age > self.limits[name]
        ]
        return max(late, key=lambda item: item.age_s - item.limit_s, default=None)

"""Deadlines: which of several expected signs of life has been silent for too long.

The arm, the safety node and everything else that waits for heartbeats share this one class. It knows no threads and
reads no clock, so a test can walk it through any silence. Feed it a steady clock: a clock that can be set would
disarm it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bid_ros.checks import check_positive
from bid_ros.chunk import NANOSECONDS


@dataclass(frozen=True)
class Expired:
    """A name that has been silent for longer than its limit.

    Attributes:
        name: whose sign of life is missing.
        age_s: s since it was last heard, or since the watch was armed if it never was.
        limit_s: s of silence that are allowed.
    """

    name: str
    age_s: float
    limit_s: float

    def __str__(self) -> str:
        return f"heartbeat of {self.name} is {1000 * self.age_s:.0f} ms old; the limit is {1000 * self.limit_s:.0f} ms"


class Deadlines:
    """Ages of named signs of life, each held to its own limit.

    A name that was never heard has no age and does not expire, until :meth:`arm` starts the clock of all names.
    So a system can come up in any order, and yet nothing is trusted for ever once work begins.

    Args:
        limits: allowed silence in s for each name, positive and finite.

    Raises:
        ValueError: if there is no name or a limit is not a positive finite number.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        if not limits:
            raise ValueError("deadlines: no name is watched; valid is one or more")
        for name, limit in limits.items():
            check_positive("deadlines", f"the limit of '{name}'", limit, ValueError, "s")
        self._limits = dict(limits)
        self._last: dict[str, int] = {}
        self._armed_ns: int | None = None

    @property
    def limits(self) -> Mapping[str, float]:
        """The allowed silence in s of each name."""
        return dict(self._limits)

    def beat(self, name: str, steady_ns: int) -> None:
        """Note a sign of life of ``name`` at ``steady_ns``; an earlier instant than the last one changes nothing.

        Raises:
            KeyError: if ``name`` is not watched.
        """
        if name not in self._limits:
            raise KeyError(f"deadlines: '{name}' is not watched; valid are {', '.join(self._limits)}")
        self._last[name] = max(steady_ns, self._last.get(name, steady_ns))

    def arm(self, steady_ns: int) -> None:
        """From ``steady_ns`` on, a name that was never heard counts as last heard at that instant."""
        self._armed_ns = steady_ns

    def ages(self, steady_ns: int) -> dict[str, float]:
        """Return the silence in s of each name that was heard or that :meth:`arm` has started; never negative."""
        starts = {name: self._last.get(name, self._armed_ns) for name in self._limits}
        return {name: max(0, steady_ns - start) / NANOSECONDS for name, start in starts.items() if start is not None}

    def expired(self, steady_ns: int) -> Expired | None:
        """Return the name that is furthest over its limit at ``steady_ns``, or None if none is."""
        late = [
            Expired(name, age, self._limits[name])
            for name, age in self.ages(steady_ns).items()
            if age > self._limits[name]
        ]
        return max(late, key=lambda item: item.age_s - item.limit_s, default=None)

    def reset(self) -> None:
        """Forget every sign of life and disarm."""
        self._last.clear()
        self._armed_ns = None

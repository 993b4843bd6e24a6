"""Statistics of the periods at which set-points go to the robot."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bid_ros.robots.ur.protocol import PeriodStatistics

WINDOW_S: Final = 60
# Percentiles come from a histogram: they are needed in the servo loop, and sorting the periods of a minute takes half a
# millisecond.
BIN_NS: Final = 10_000
BINS: Final = 5000
LONGEST: Final = BINS - 1  # holds whatever is longer


class Periods:
    """Keeps the periods of the last minute of following; a pause between two followings is none.

    Args:
        rate_hz: nominal rate.
    """

    def __init__(self, rate_hz: int) -> None:
        self._nominal_ms = 1000.0 / rate_hz
        self._periods_ns = np.zeros(WINDOW_S * rate_hz, dtype=np.int64)
        self._bins = np.zeros(BINS, dtype=np.int64)
        self._count = 0
        self._last_ns: int | None = None
        self.skipped = 0

    def sent(self, now_ns: int) -> None:
        """Note a set-point sent at ``now_ns`` of a steady clock."""
        if self._last_ns is not None:
            self._keep(now_ns - self._last_ns)
        self._last_ns = now_ns

    def pause(self) -> None:
        """Note that following has ended."""
        self._last_ns = None

    def statistics(self) -> PeriodStatistics:
        """Return the statistics. Takes some microseconds."""
        count = min(self._count, self._periods_ns.size)
        if count == 0:
            return PeriodStatistics(0, self.skipped, self._nominal_ms, math.nan, math.nan, math.nan)
        longest = float(self._periods_ns[:count].max()) / 1e6
        p50, p99 = (self._percentile(share, count, longest) for share in (0.5, 0.99))
        return PeriodStatistics(count, self.skipped, self._nominal_ms, p50, p99, longest)

    def _keep(self, period_ns: int) -> None:
        place = self._count % self._periods_ns.size
        if self._count >= self._periods_ns.size:
            self._bins[_bin(int(self._periods_ns[place]))] -= 1
        self._periods_ns[place] = period_ns
        self._bins[_bin(period_ns)] += 1
        self._count += 1

    def _percentile(self, share: float, count: int, longest_ms: float) -> float:
        """Return the smallest period in ms that ``share`` of all do not exceed."""
        found = int(np.searchsorted(np.cumsum(self._bins), math.ceil(share * count)))
        return longest_ms if found == LONGEST else min(found * BIN_NS / 1e6, longest_ms)


def _bin(period_ns: int) -> int:
    return min(round(period_ns / BIN_NS), LONGEST)

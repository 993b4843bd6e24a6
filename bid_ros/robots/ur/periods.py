"""Statistics of the periods at which set-points go to the robot."""

import math
from typing import Final

import numpy as np

from bid_ros.robots.ur.protocol import PeriodStatistics

WINDOW_S: Final = 60


class Periods:
    """Keeps the periods of the last minute of following; a pause between two followings is none.

    Args:
        rate_hz: nominal rate.
    """

    def __init__(self, rate_hz: int) -> None:
        self._nominal_ms = 1000.0 / rate_hz
        self._periods_ns = np.zeros(WINDOW_S * rate_hz, dtype=np.int64)
        self._count = 0
        self._last_ns: int | None = None
        self.skipped = 0

    def sent(self, now_ns: int) -> None:
        """Note a set-point sent at ``now_ns`` of a steady clock."""
        if self._last_ns is not None:
            self._periods_ns[self._count % self._periods_ns.size] = now_ns - self._last_ns
            self._count += 1
        self._last_ns = now_ns

    def pause(self) -> None:
        """Note that following has ended."""
        self._last_ns = None

    def statistics(self) -> PeriodStatistics:
        """Return the statistics. Takes half a millisecond."""
        kept_ms = self._periods_ns[: self._count] / 1e6
        found = (math.nan,) * 3
        if kept_ms.size:
            found = np.percentile(kept_ms, (50, 99, 100), method="inverted_cdf").tolist()
        return PeriodStatistics(kept_ms.size, self.skipped, self._nominal_ms, *found)

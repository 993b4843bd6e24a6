"""Periods of the loop to a UR."""

import math

import numpy as np
import pytest

from bid_ros.robots.ur.streams import Periods

MS = 1_000_000


def test_periods_are_measured_within_a_following_only():
    periods = Periods(125)
    assert math.isnan(periods.statistics().p50_ms)
    for k in range(100):
        periods.sent(k * 8 * MS)
    periods.pause()
    periods.sent(10_000 * MS)
    periods.sent(10_020 * MS)
    statistics = periods.statistics()
    assert (statistics.count, statistics.p50_ms, statistics.max_ms) == (100, 8.0, 20.0)


def test_periods_of_the_last_minute_are_measured():
    random = np.random.default_rng(5)
    periods = Periods(500)
    now, measured = 0, []
    # The first ones are far longer, and fall out of the window.
    for k in range(2 * 60 * 500):
        measured.append(int((100 if k < 9000 else 2 + random.exponential(0.2)) * MS))
        periods.sent(now)
        now += measured[-1]
    periods.sent(now)
    kept = np.array(measured[-60 * 500 :]) / MS
    statistics = periods.statistics()
    assert statistics.count == kept.size
    assert statistics.p50_ms == pytest.approx(np.percentile(kept, 50), abs=0.011)
    assert statistics.p99_ms == pytest.approx(np.percentile(kept, 99), abs=0.011)
    assert statistics.max_ms == kept.max()


def test_a_very_long_period_is_told():
    periods = Periods(125)
    for now in (0, 8, 16, 400):
        periods.sent(now * MS)
    assert (periods.statistics().p50_ms, periods.statistics().p99_ms) == (8.0, 384.0)

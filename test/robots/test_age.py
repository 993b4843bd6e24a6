"""The age of states by two clocks."""

import pytest

from bid_ros.robots.age import DRIFT, StateAge

MS = 1_000_000


def test_a_state_is_as_old_as_its_delay_is_longer_than_the_shortest():
    age = StateAge(0, 7 * MS)
    assert age.late_ns(1 * MS, 8 * MS) == 0
    assert age.late_ns(2 * MS, 29 * MS) == pytest.approx(20 * MS, rel=0.01)
    assert age.late_ns(3 * MS, 10 * MS) == 0
    assert age.gained_ns < 1e5


def test_clocks_may_drift_but_no_faster_than_that():
    for pace, late in ((1.0 + 0.9 * DRIFT, 0), (1.0 + 3.0 * DRIFT, 2.0 * DRIFT * 1e9)):
        age = StateAge(0, 0)
        found = [age.late_ns(k * MS, round(k * MS * pace)) for k in range(1, 1001)]
        assert found[-1] == pytest.approx(late, rel=0.05)


def test_a_clock_that_is_too_fast_gains():
    age = StateAge(0, 0)
    for k in range(1, 101):
        age.late_ns(2 * k * MS, k * MS)
    assert age.gained_ns == pytest.approx(100 * MS, rel=0.01)

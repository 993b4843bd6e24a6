"""The distance after a smooth start, for any speed and time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bid_ros.sim.soft_start import SOFT_START_S, travelled

SPEEDS = st.floats(0.0, 2.0)
TIMES = st.floats(-1.0, 30.0)
STEP = 1e-4


@given(SPEEDS, TIMES)
def test_it_never_goes_back_nor_faster_than_its_speed(speed, t):
    gone = travelled(speed, t + STEP) - travelled(speed, t)
    assert -1e-12 <= gone <= speed * STEP + 1e-9


@given(SPEEDS, st.floats(SOFT_START_S, 30.0))
def test_after_the_start_it_has_lost_half_of_the_start(speed, t):
    assert travelled(speed, t) == pytest.approx(speed * (t - SOFT_START_S / 2), abs=1e-9)


@given(SPEEDS, TIMES)
def test_its_acceleration_has_a_bound_so_that_nothing_jerks(speed, t):
    before, at, after = (travelled(speed, t + k * STEP) for k in (-1, 0, 1))
    # 1.5 v / T is the steepest of the smooth step.
    assert abs(after - 2 * at + before) / STEP**2 <= 1.5 * speed / SOFT_START_S + 1e-3


def test_before_the_start_it_stands():
    assert travelled(0.5, -1.0) == travelled(0.5, 0.0) == 0.0

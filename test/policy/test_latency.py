import pytest

from bid_ros.policy.budget import RECENT, DelayMeter

STEP = 100_000_000


@pytest.mark.parametrize(("delay_ns", "steps"), [(0, 0), (1, 1), (STEP, 1), (STEP + 1, 2), (-5, 0)])
def test_a_step_that_has_begun_counts(delay_ns, steps):
    meter = DelayMeter(STEP)
    assert meter.steps is None
    meter.took(delay_ns)
    assert meter.steps == steps


def test_the_longest_of_the_last_decisions_counts_until_they_have_passed():
    meter = DelayMeter(STEP)
    meter.took(3 * STEP)
    for _ in range(RECENT - 1):
        meter.took(STEP // 2)
        assert meter.steps == 3
    meter.took(STEP // 2)
    assert meter.steps == 1

import numpy as np
import pytest
from scipy.stats import binomtest

from bid_ros.core.errors import BidError
from bid_ros.episodes.confidence import paired_difference, wilson_interval


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "episodes"), [(0, 1), (1, 1), (0, 20), (13, 20), (20, 20), (450, 1000)])
def test_wilson_agrees_with_scipy(successes, episodes, confidence):
    expected = binomtest(successes, episodes).proportion_ci(confidence, method="wilson")
    assert wilson_interval(successes, episodes, confidence) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_ends_are_exact_and_no_episodes_mean_no_knowledge():
    assert wilson_interval(0, 20)[0] == 0.0
    assert wilson_interval(20, 20)[1] == 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"), [((3, 2), "3 successes of 2"), ((-1, 2), "-1 succ"), ((1, 2, 1), "is 1")]
)
def test_wilson_refuses_the_impossible(arguments, words):
    with pytest.raises(BidError, match=words):
        wilson_interval(*arguments)


def test_paired_difference_has_the_mean_and_is_seeded():
    first, second = [1, 1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0, 0, 1]
    result = paired_difference(first, second, seed=3)
    assert result[0] == pytest.approx(3 / 8)
    assert result[1] < 3 / 8 < result[2]
    assert result == paired_difference(first, second, seed=3)
    assert paired_difference(second, first, seed=3)[0] == pytest.approx(-3 / 8)


def test_pairing_cancels_what_both_share():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, 40)
    _, low, high = paired_difference(hard + 1.0, hard)
    assert low == pytest.approx(1.0) and high == pytest.approx(1.0)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(200):
        a, b = rng.random(40) < 0.8, rng.random(40) < 0.6
        _, low, high = paired_difference(a, b, seed=trial, resamples=500)
        covered += low <= 0.2 <= high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [1, 0]), ([[1]], [[0]])])
def test_refuses_scores_that_are_no_pairs(first, second):
    with pytest.raises(BidError, match="valid is twice the same"):
        paired_difference(first, second)

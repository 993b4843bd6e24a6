"""What is counted, and the distances of two histograms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from bid_ros.bench.diagnostic.process import COUNTS, DISTANCES, Rollouts, histogram

STATES = np.array([[3, 3, 4, 5, 5, 5, 9, 10, 10], [5, 5, 5, 5, 5, 5, 5, 5, 5]], dtype=np.int8)
FORWARD = np.array([[0, 1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 1, 0, 1, 1, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("count", "wanted"), [("idle", [2, 4]), ("idle-s5", [1, 4]), ("stay", [3, 8]), ("stay-s5", [2, 8])]
)
def test_what_is_counted(count, wanted):
    assert COUNTS[count](Rollouts(STATES, FORWARD)).tolist() == wanted


def test_a_histogram_is_shares():
    np.testing.assert_array_equal(histogram(np.array([0, 2, 2, 3]), 6), [0.25, 0, 0.5, 0.25, 0, 0])


def test_distances():
    first, second = np.random.default_rng(0).dirichlet(np.ones(12), size=2)
    places = np.arange(12)
    assert DISTANCES["wasserstein"](first, second) == pytest.approx(wasserstein_distance(places, places, first, second))
    assert DISTANCES["summed"](first, second) == pytest.approx(2 * DISTANCES["total-variation"](first, second))
    assert DISTANCES["total-variation"](np.array([1.0, 0]), np.array([0, 1.0])) == 1

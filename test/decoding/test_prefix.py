"""The soft mask of Real-Time Chunking over the overlap of two decisions."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding.prefix import prefix_weights


def test_the_mask_of_the_methods_description():
    weights = prefix_weights(delay=2, overlap=6)
    np.testing.assert_allclose(weights, [1, 1, 0.570589, 0.287072, 0.114492, 0.02577], atol=1e-6)


@pytest.mark.parametrize(("delay", "overlap"), [(0, 15), (1, 14), (4, 15), (14, 15)])
def test_committed_steps_count_fully_and_later_ones_less_and_less(delay, overlap):
    weights = prefix_weights(delay, overlap)
    assert weights.shape == (overlap,)
    assert (weights[:delay] == 1).all()
    assert (np.diff(weights[delay:]) < 0).all()
    assert (weights[delay:] > 0).all()
    assert (weights[delay:] < 1).all()


@pytest.mark.parametrize("delay", [3, 9])
def test_an_overlap_that_ends_before_the_decision_arrives_is_all_committed(delay):
    np.testing.assert_array_equal(prefix_weights(delay, 3), np.ones(3))

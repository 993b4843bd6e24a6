"""Weights from the spread of the training data."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import BidConfig, DecoderConfig, DecodingError, feature_weights, select


def test_without_sizes_a_weight_is_the_inverse_of_its_columns_spread():
    assert feature_weights([0.1, 2.0, 0.0]) == pytest.approx((10.0, 0.5, 0.0))


def test_a_feature_has_one_weight_for_all_its_columns():
    assert feature_weights([0.03, 0.04, 0.0, 0.02], sizes=[3, 1]) == pytest.approx((20.0, 20.0, 20.0, 50.0))


def test_every_feature_counts_alike():
    """Position in metres, six rotation numbers and a gripper of a few centimetres: equal mean squared distance."""
    rng = np.random.default_rng(0)
    spread = np.array([0.1, 0.2, 0.05, 0.01, 0.3, 0.02, 0.3, 0.001, 0.02, 0.03])
    actions = rng.normal(size=(20_000, 10)) * spread
    scaled = np.diff(actions * feature_weights(actions.std(axis=0), sizes=[3, 6, 1]), axis=0) ** 2
    shares = [scaled[:, columns].sum(axis=1).mean() for columns in (slice(0, 3), slice(3, 9), slice(9, 10))]
    np.testing.assert_allclose(shares, 2.0, rtol=0.03)


@pytest.mark.parametrize(
    ("spread", "sizes", "message"),
    [
        ([0.1, np.nan], None, "spread of the actions"),
        ([0.1, -0.1], None, "spread of the actions"),
        ([], None, "spread of the actions"),
        ([0.1, 0.2], [3], "do not add up to the 2 columns"),
        ([0.1, 0.2], [2, 0], "do not add up"),
        ([0.0, 0.0], None, "no action varied"),
    ],
)
def test_impossible_spreads_are_refused(spread, sizes, message):
    with pytest.raises(DecodingError, match=message):
        feature_weights(spread, sizes)


def test_a_feature_may_count_more_or_not_at_all():
    found = feature_weights([0.03, 0.04, 0.0, 0.02], sizes=[3, 1], factors=[0.5, 2.0])
    assert found == pytest.approx((10.0, 10.0, 10.0, 100.0))
    assert feature_weights([0.1, 0.2], factors=[0.0, 1.0]) == pytest.approx((0.0, 5.0))


def test_the_factor_of_a_feature_decides_which_sample_is_closest():
    """Two samples, one nearer to the last decision in the first feature, the other one in the second."""
    strong, previous = np.array([[[0.0, 1.0]] * 3, [[1.0, 0.0]] * 3]), np.zeros((2, 2))
    for factors, chosen in (([2.0, 1.0], 0), ([1.0, 2.0], 1)):
        weights = feature_weights([1.0, 1.0], factors=factors)
        config = BidConfig(mode_size=1, terms="backward", weights=weights)
        assert select(strong, None, previous, config).index == chosen


@pytest.mark.parametrize("factors", [[1.0], [1.0, -1.0], [1.0, float("nan")]])
def test_other_factors_are_refused(factors):
    with pytest.raises(DecodingError, match="valid are 2 finite numbers of at least 0"):
        feature_weights([0.1, 0.2], factors=factors)


def test_a_spread_of_single_precision_is_weighed_in_double():
    spread = np.random.default_rng(1).uniform(0.01, 0.3, 10).astype(np.float32)
    wanted = feature_weights(spread.astype(np.float64), [3, 6, 1])
    assert feature_weights(spread, [3, 6, 1]) == wanted


@pytest.mark.parametrize(
    ("samples", "mode_size", "given", "wanted"),
    [
        (16, None, None, 3),
        (4, None, None, 2),
        (1, None, None, 1),
        (16, 5, None, 5),
        (16, 5, 8, 4),
        (16, 5, 40, 5),
        (16, None, 4, 2),
        (16, None, 1, 1),
        (4, None, 40, 2),
    ],
)
def test_the_mode_size_is_at_most_half_of_the_samples_that_there_are(samples, mode_size, given, wanted):
    assert DecoderConfig(samples=samples, mode_size=mode_size).bid(1, 2, samples=given).mode_size == wanted


def test_one_weak_sample_is_neither_none_nor_all():
    with pytest.raises(DecodingError, match="weak_samples is 1; valid are 0 and samples, 8"):
        DecoderConfig(samples=8, weak_samples=1)

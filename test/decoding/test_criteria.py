"""Distances and sums for many samples are those of the plain formula."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding.criteria import pair_distances, smallest_sum


@pytest.mark.parametrize(("first", "second"), [(300, 300), (1000, 100), (3, 20_000)])
@pytest.mark.parametrize("metric", ["l1", "l2"])
def test_distances_of_many_pairs(metric, first, second):
    rng = np.random.default_rng(first)
    chunks, others = rng.normal(size=(first, 3, 2)), rng.normal(size=(second, 3, 2))
    difference = chunks[:, None] - others
    steps = np.abs(difference).sum(-1) if metric == "l1" else np.sqrt((difference**2).sum(-1))
    np.testing.assert_allclose(pair_distances(chunks, others, metric), steps.sum(-1), atol=1e-9)


@pytest.mark.parametrize("scale", [0.01, 1.0, 500.0])
def test_samples_that_are_nearly_copies_have_exact_distances(scale):
    """As those of a policy without noise, in metres or in pixels: |a|^2 + |b|^2 - 2ab alone would lose the digits."""
    rng = np.random.default_rng(3)
    chunks = np.repeat(rng.normal(size=(50, 8, 2)), 6, axis=0) * scale
    chunks += rng.normal(size=chunks.shape) * 1e-9 * scale
    wanted = np.sqrt(((chunks[:, None] - chunks) ** 2).sum(-1)).sum(-1)
    np.testing.assert_allclose(pair_distances(chunks, chunks, "l2"), wanted, rtol=1e-6, atol=1e-12 * scale)


@pytest.mark.parametrize("count", [1, 2, 7, 500, 1999, 2000, 3000])
def test_the_smallest_values_of_long_rows_are_summed(count):
    distances = np.random.default_rng(count).uniform(size=(50, 2000))
    np.testing.assert_allclose(smallest_sum(distances, count), np.sort(distances, axis=1)[:, :count].sum(axis=1))

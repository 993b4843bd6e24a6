"""Holds what decoders measure on recorded episodes against their success when they act."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import BidError
from bid_ros.core.rotation import Array

JUDGING: Final = ("error", "first", "last", "coherence", "switch", "backward", "forward", "refused", "jerk")
"""Measures of what was chosen, whatever it was chosen from. Each is taken as better the smaller it is."""
RESAMPLES: Final = 4000
FEWEST: Final = 3


@dataclass(frozen=True)
class MeasureRanking:
    """How a measure ranks decoders, beside their success.

    Attributes:
        rho: Spearman's rank correlation of success with the measure, whose sign is turned: 1 is the same order.
        low, high: 95 % interval over episodes, of the measure and of the success. The decoders and the task are what
            they are: it says nothing about others.
        right, pairs: of the pairs of decoders whose success clearly differs, how many the measure has in their order.
        picked: the decoders that the measure calls best, several if it cannot tell them apart.
        lost: their mean success below that of the best one.
    """

    rho: float
    low: float
    high: float
    right: int
    pairs: int
    picked: tuple[str, ...]
    lost: float


def agreement(
    offline: Mapping[str, Sequence[float]], online: Mapping[str, tuple[float, float, float]]
) -> MeasureRanking:
    """Hold one measure against success.

    Args:
        offline: the measure, smaller is better: a value for each episode, the same episodes for each decoder.
        online: success, or score: mean and 95 % interval, of at least the same decoders.

    Raises:
        BidError: fewer than three decoders have both.
    """
    names = [name for name in offline if name in online]
    if len(names) < FEWEST:
        raise BidError(f"{len(names)} decoders have a measure and a success; valid are {FEWEST} or more")
    values = -np.array([offline[name] for name in names], dtype=np.float64)  # (M, E)
    means, low, high = np.array([online[name] for name in names], dtype=np.float64).T
    random = np.random.default_rng(0)
    drawn = random.integers(0, values.shape[1], (RESAMPLES, values.shape[1]))
    measured = np.nanmean(values[:, drawn], axis=2).T  # (R, M)
    deviation = (high - low) / (2 * NormalDist().inv_cdf(0.975))
    succeeded = random.normal(means, deviation, (RESAMPLES, len(names)))
    found = np.nanmean(values, axis=1)
    interval = np.percentile(_rank_correlation(measured, succeeded), [2.5, 97.5])
    clear = [(a, b) for a, b in combinations(range(len(names)), 2) if low[a] > high[b] or low[b] > high[a]]
    right = sum((found[a] - found[b]) * (means[a] - means[b]) > 0 for a, b in clear)
    picked = np.flatnonzero(np.isclose(found, found.max(), rtol=1e-9, atol=1e-12))
    rho = float(_rank_correlation(found[None], means[None])[0])
    lost = float(means.max() - means[picked].mean())
    return MeasureRanking(
        rho, float(interval[0]), float(interval[1]), int(right), len(clear), tuple(names[i] for i in picked), lost
    )


def agreements(
    by_episode: Sequence[Mapping[str, Any]], online: Mapping[str, tuple[float, float, float]]
) -> dict[str, MeasureRanking]:
    """Hold every measure of :data:`JUDGING` that the episodes have against success.

    Args:
        by_episode: ``by_episode`` of an ``evaluation.json``.
        online: as :func:`agreement` takes it.
    """
    decoders = list(by_episode[0]["means"])
    return {
        measure: agreement(
            {name: [item["means"][name].get(measure, np.nan) for item in by_episode] for name in decoders}, online
        )
        for measure in JUDGING
        if any(measure in values for item in by_episode for values in item["means"].values())
    }


def _rank_correlation(first: Array, second: Array) -> Array:
    """Return Spearman's correlation of each row of ``(R, M)`` and ``(R, M)``; 0 where one is all the same."""
    from scipy.stats import rankdata

    a, b = (rankdata(item, axis=1) for item in (first, second))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    length = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.asarray(np.divide((a * b).sum(axis=1), length, out=np.zeros(len(a)), where=length > 0))

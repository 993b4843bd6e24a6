"""Confidence intervals of success rates and of differences."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import BidError


def wilson_interval(successes: int, episodes: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval (low, high) of a success rate.

    Unlike the normal interval it stays inside 0 to 1, and is not empty at 0 or at all successes.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927) 209-212.

    Args:
        successes: number of successes, 0 to ``episodes``.
        episodes: number of episodes; with 0 the interval is (0, 1).
        confidence: probability that such an interval contains the true rate, between 0 and 1.

    Raises:
        BidError: a count or the confidence is not possible.
    """
    _check_confidence(confidence)
    if not 0 <= successes <= episodes:
        raise BidError(f"{successes} successes of {episodes} episodes; valid is 0 to the number of episodes")
    if episodes == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / episodes
    shrink = 1 + z * z / episodes
    middle = (rate + z * z / (2 * episodes)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / episodes + z * z / (4 * episodes**2))
    # At the ends the interval is exactly 0 or 1, whatever the rounding.
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == episodes else middle + half)


def paired_difference(
    first: ArrayLike, second: ArrayLike, seed: int = 0, confidence: float = 0.95, resamples: int = 10_000
) -> tuple[float, float, float]:
    """Return mean(first - second) and its bootstrap percentile interval (mean, low, high).

    Pairs (episodes of the same seed) are drawn with replacement. So the difficulty of an episode cancels.

    Source: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall 1993, section 13.3.

    Args:
        first, second: ``(K,)`` scores of the same episodes in the same order, for example 1 for success and 0 for not.
        seed: seed of the resampling.
        confidence: probability that such an interval contains the true difference, between 0 and 1.
        resamples: number of bootstrap samples.

    Raises:
        BidError: the scores are not two equally long, non-empty lists, or the confidence is not possible.
    """
    _check_confidence(confidence)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise BidError(f"paired scores have shapes {a.shape} and {b.shape}; valid is twice the same (K,) with K >= 1")
    difference = a - b
    drawn = np.random.default_rng(seed).integers(0, a.size, size=(resamples, a.size))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(difference[drawn].mean(axis=1), [tail, 100 - tail])
    return float(difference.mean()), float(low), float(high)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise BidError(f"confidence is {confidence}; valid is between 0 and 1")

"""How idle a rollout was, and how far two distributions of idleness are from each other."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.diagnostic.process import GOAL, PAUSE_STATE, Rollouts

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


def _counter(stays: bool, in_pause: bool) -> Callable[[Rollouts], Counts]:
    """Return what counts per rollout, ``(M,)``: idle actions, or steps after which the state is the same.

    Args:
        stays: count steps, whether the action was idle or failed.
        in_pause: only those that began in s5; else all before the goal.
    """

    def count(rollouts: Rollouts) -> Counts:
        before, after = rollouts.states[:, :-1], rollouts.states[:, 1:]
        idle = before == after if stays else ~rollouts.forward
        where = before == PAUSE_STATE if in_pause else before != GOAL
        counts: Counts = (idle & where).sum(axis=1, dtype=np.int64)
        return counts

    return count


def histogram(counts: Counts, size: int) -> Shares:
    """Share of the rollouts with 0, 1, ... ``size - 1`` of what was counted."""
    shares: Shares = np.bincount(counts, minlength=size) / counts.size
    return shares


def wasserstein(first: Shares, second: Shares) -> float:
    """1-Wasserstein distance of two distributions on 0, 1, ...: by how many actions they differ; any size."""
    return float(np.abs(np.cumsum(first - second)).sum())


def total_variation(first: Shares, second: Shares) -> float:
    """Half the summed difference, as usually defined; 0 to 1."""
    return summed_difference(first, second) / 2


def summed_difference(first: Shares, second: Shares) -> float:
    """Summed difference of the two distributions; 0 to 2."""
    return float(np.abs(first - second).sum())


COUNTS: Final[Mapping[str, Callable[[Rollouts], Counts]]] = {
    "idle": _counter(stays=False, in_pause=False),
    "idle-s5": _counter(stays=False, in_pause=True),
    "stay": _counter(stays=True, in_pause=False),
    "stay-s5": _counter(stays=True, in_pause=True),
}
DISTANCES: Final[Mapping[str, Callable[[Shares, Shares], float]]] = {
    "wasserstein": wasserstein,
    "total-variation": total_variation,
    "summed": summed_difference,
}

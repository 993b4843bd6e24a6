"""How idle a rollout was, and how far two distributions of idleness are from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.diagnostic.process import GOAL, PAUSE_STATE, Rollouts

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


def idle_actions(rollouts: Rollouts) -> Counts:
    """Idle actions taken before the goal, ``(M,)``."""
    return _sum(~rollouts.forward & (rollouts.states[:, :-1] != GOAL))


def idle_actions_in_pause(rollouts: Rollouts) -> Counts:
    """Idle actions taken in s5, ``(M,)``."""
    return _sum(~rollouts.forward & (rollouts.states[:, :-1] == PAUSE_STATE))


def steps_without_progress(rollouts: Rollouts) -> Counts:
    """Steps after which the state is the same, idle or failed, before the goal, ``(M,)``."""
    return _sum(_stays(rollouts))


def steps_without_progress_in_pause(rollouts: Rollouts) -> Counts:
    """Steps that began and ended in s5, idle or failed, ``(M,)``."""
    return _sum(_stays(rollouts) & (rollouts.states[:, :-1] == PAUSE_STATE))


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
    "idle": idle_actions,
    "idle-s5": idle_actions_in_pause,
    "stay": steps_without_progress,
    "stay-s5": steps_without_progress_in_pause,
}
DISTANCES: Final[Mapping[str, Callable[[Shares, Shares], float]]] = {
    "wasserstein": wasserstein,
    "total-variation": total_variation,
    "summed": summed_difference,
}


def _stays(rollouts: Rollouts) -> NDArray[np.bool_]:
    before, after = rollouts.states[:, :-1], rollouts.states[:, 1:]
    stays: NDArray[np.bool_] = (before == after) & (before != GOAL)
    return stays


def _sum(flags: NDArray[np.bool_]) -> Counts:
    counts: Counts = flags.sum(axis=1, dtype=np.int64)
    return counts

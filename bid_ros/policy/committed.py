"""Committed rows: what the robot executes while a decision is computed. A policy that was trained for delays knows it.

There are two ways. Either the rows are given clean while the others are denoised, and come out as they are: Black, Ren,
Equi, Levine, "Training-Time Action Conditioning for Efficient Real-Time Chunking", 2025 (arXiv 2512.05964). Or the
observed state is rolled forward, and the chunk begins where the committed rows end: Tang et al., "VLASH: Real-Time VLAs
via Future-State-Aware Asynchronous Inference", 2025 (arXiv 2512.01031).

===========  ==================================================================================
papers       here
===========  ==================================================================================
d, Delta     steps of the delay: ``len(committed) - (To - 1)``, as the rows of the past are committed too
A prefix     ``committed``, :class:`Prefix`
tau = 1      ``clean_step`` of :class:`bid_ros.policy.diffusion.sampler.DiffusionConfig`
===========  ==================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prefix:
    """First rows of chunks that are given clean, for E environments; E is 1 but in a bench.

    Attributes:
        rows: ``(E, H, D)`` float32, normalised; those after ``count`` are not looked at.
        count: ``(E,)`` int64, how many are given. 0: none.
    """

    rows: NDArray[np.float32]
    count: NDArray[np.int64]

    def put(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return samples ``(N, H, D)``, or ``(N, E, H, D)``, with the given rows in their place."""
        given = np.arange(samples.shape[-2])[:, None] < self.count[:, None, None]
        return np.where(given, self.rows, samples)


def rolled_features(task: Task) -> list[tuple[Feature, slice]]:
    """Return what is observed as it is commanded, and its columns of an action: the state that actions lead to."""
    observed = {item.name: item for item in task.vectors}
    return [
        (observed[item.name], own)
        for item, own in task.action_columns
        if item.name in observed and (item.kind, item.size) == (observed[item.name].kind, observed[item.name].size)
    ]


def roll_forward(task: Task, values: Mapping[str, NDArray[Any]], committed: Array) -> dict[str, NDArray[Any]]:
    """Return an observation whose state is that of the time when the committed rows are executed.

    A committed action is absolute: a step later the state is taken to be where it leads.

    Args:
        task: layout of the actions.
        values: newest ``To`` values of each feature, raw units.
        committed: ``(To - 1 + d, D)``, task units.
    """
    rolled = dict(values)
    for item, own in rolled_features(task):
        seen = np.asarray(values[item.name])
        ahead = committed[task.observation_steps - 1 :, own]
        rolled[item.name] = np.concatenate([seen, ahead])[-len(seen) :].astype(seen.dtype)
    return rolled


def continued(committed: Array, chunks: Array, delay: int) -> Array:
    """Return chunks ``(N, H, D)`` that begin with the committed rows ``(n, D)``.

    Args:
        committed: task units.
        chunks: what was sampled, task units.
        delay: rows by which the samples begin later, which are dropped at their end.
    """
    count, horizon = len(committed), chunks.shape[-2]
    begin = np.broadcast_to(committed, (*chunks.shape[:-2], *committed.shape))
    whole: Array = np.concatenate([begin, chunks[..., count - delay : horizon - delay, :]], axis=-2)
    return whole

"""What is measured of one decision, beside the demonstration and beside the decision before."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.smoothness import SWITCH_SHARE
from bid_ros.core.rotation import Array

COVERED: Final = 0.25  # spreads
MEASURES: Final = {
    "error": "distance to the demonstrated actions, mean over the horizon",
    "first": "distance of the first action",
    "last": "distance of the last action",
    "best": "distance of the nearest of all samples: what a perfect choice would reach",
    "covered": "share of decisions in which a sample is nearer than a quarter of a spread",
    "spread": "standard deviation of the samples, mean over the horizon",
    "coherence": "distance to the decision before, where both speak of the same instants",
    "switch": "share of decisions that change the strategy",
    "choose_ms": "time to choose, ms",
}
"""Every measure, in words. Distances are in units of the spread of the training actions, over all dimensions."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Makes distances of actions comparable: divides each value by its spread in the training data.

    Attributes:
        spread: ``(D,)``, positive.
    """

    spread: Array

    def distances(self, first: Array, second: Array) -> Array:
        """Return the distance of actions ``(..., D)`` and ``(..., D)``: root mean square over D, in spreads."""
        difference = (first - second) / self.spread
        distances: Array = np.sqrt(np.mean(difference**2, axis=-1))
        return distances


def judged(
    chosen: Array, samples: Array, demonstrated: Array, before: Array | None, scale: Scale, choose_ms: float
) -> tuple[dict[str, float], Array]:
    """Return the measures of one decision, and its distance to the demonstration at each known step of the horizon.

    Args:
        chosen: ``(K, D)``: the executable rows, the first for now.
        samples: ``(N, K, D)``: the same rows of all samples.
        demonstrated: ``(L, D)``, L >= 1: what was done from now on; fewer than K rows near the end of the episode.
        before: ``(M, D)``: rows of the decision before, the first for now; None if there is none.
        scale: of the task's actions.
        choose_ms: time to choose.
    """
    known = min(len(chosen), len(demonstrated))
    future = demonstrated[:known]
    errors = scale.distances(chosen[:known], future)
    nearest = float(scale.distances(samples[:, :known], future).mean(axis=1).min())
    found = {
        "error": float(errors.mean()),
        "first": float(errors[0]),
        "last": float(errors[-1]),
        "best": nearest,
        "covered": float(nearest < COVERED),
        "spread": float(np.sqrt(np.mean((samples.std(axis=0) / scale.spread) ** 2))),
        "choose_ms": choose_ms,
    }
    if before is not None and len(before):
        shared = min(len(before), len(chosen))
        apart = float(scale.distances(chosen[:shared], before[:shared]).mean())
        found |= {"coherence": apart, "switch": float(apart > SWITCH_SHARE)}
    return found, errors

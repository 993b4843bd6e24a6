"""What is measured of one decision, beside the demonstration and beside the decision before."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.smoothness import SWITCH_SHARE
from bid_ros.core.rotation import Array
from bid_ros.decoding.criteria import backward_coherence, pair_distances, smallest_sum
from bid_ros.decoding.decoder_config import SMALLEST_SPREAD

COVERED: Final = 0.25  # spreads
DECAY: Final = 0.5  # rho: weight of a step of the backward loss relative to the one before it
SMALLEST_MODE: Final = 8  # a mode has at least one in so many of the samples
MEASURES: Final = {
    "error": "distance to the demonstrated actions, mean over the horizon",
    "first": "distance of the first action",
    "last": "distance of the last action",
    "random": "distance of a random one of its samples, in the mean: what chance would reach",
    "gain": "how much nearer than that its choice is; 0 or less: no better than chance",
    "best": "distance of the nearest of its samples: what a perfect choice would reach",
    "covered": "share of decisions in which one of its samples is nearer than a quarter of a spread",
    "spread": "standard deviation of its samples, mean over the horizon",
    "modes": "groups of its samples that lie further apart than a change of strategy",
    "disagreement": "share of pairs of its samples that lie further apart than a change of strategy",
    "coherence": "distance to the decision before, where both speak of the same instants",
    "switch": "share of decisions that change the strategy",
    "backward": "backward loss: as coherence, but each step counts half as much as the one before it",
    "forward": "forward loss: distance to the nearer half of N strong samples less that to N weak ones, per step",
    "refused": "share of decisions that break the task's limits, for which safety would stop the arm",
    "jerk": "root mean square jerk of the first actions of all decisions, spreads/s^3",
    "choose_ms": "time to choose, ms",
    "decision_ms": "time to encode, sample and choose, as it would be alone, ms",
}
"""Every measure, in words. Distances are in units of the spread of the training actions, over all dimensions."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Makes distances of actions comparable: divides each value by its spread in the training data.

    Attributes:
        spread: ``(D,)``, not negative. A value that did not vary has no unit, so it does not count.
    """

    spread: Array

    def scaled(self, actions: Array) -> Array:
        """Return actions ``(..., D)`` such that their Euclidean distance is the root mean square over D, in spreads."""
        varied = self.spread > SMALLEST_SPREAD
        unit = np.where(varied, self.spread * np.sqrt(max(1, int(varied.sum()))), np.inf)
        return np.asarray(actions / unit)

    def distances(self, first: Array, second: Array) -> Array:
        """Return the distance of actions ``(..., D)`` and ``(..., D)``: root mean square over D, in spreads."""
        return np.asarray(np.linalg.norm(self.scaled(first - second), axis=-1))


class JudgedDecision:
    """One decision of a recorded episode: what was done from now on, and what the policy would do.

    Args:
        scale: of the task's actions.
        future: ``(L, D)``, L >= 1: what was done from now on; fewer than K rows near the end of the episode.
        strong: ``(N, K, D)``: executable rows of the strong samples to which every decoder's choice is compared.
        weak: ``(N, K, D)``, or None.
    """

    def __init__(self, scale: Scale, future: Array, strong: Array, weak: Array | None) -> None:
        self._scale, self._future = scale, future
        self._strong = scale.scaled(strong)
        self._weak = None if weak is None else scale.scaled(weak)
        self._known: dict[bytes, dict[str, float]] = {}

    def judged(
        self, chosen: Array, samples: Array, before: Array | None, more: dict[str, float]
    ) -> tuple[dict[str, float], Array]:
        """Return the measures of a choice, and its distance to the demonstration at each known step of the horizon.

        Args:
            chosen: ``(K, D)``: the executable rows, the first for now.
            samples: ``(M, K, D)``: the same rows of all samples that the decoder had.
            before: ``(B, D)``: rows of the decision before, the first for now; None if there is none.
            more: measures of other origin.
        """
        known = min(len(chosen), len(self._future))
        errors = self._scale.distances(chosen[:known], self._future[:known])
        found = {"error": float(errors.mean()), "first": float(errors[0]), "last": float(errors[-1])}
        found |= self.of_samples(samples)
        found["gain"] = found["random"] - found["error"]
        if before is not None and len(before):
            shared = min(len(before), len(chosen))
            apart = self._scale.distances(chosen[:shared], before[:shared])
            coherence = float(apart.mean())
            found |= {"coherence": coherence, "switch": float(coherence > SWITCH_SHARE)}
            weights = DECAY ** np.arange(shared, dtype=np.float64)
            rows = self._scale.scaled(chosen[None, :shared]), self._scale.scaled(before[:shared])
            found["backward"] = float(backward_coherence(*rows, weights / weights.sum(), "l2")[0])
        found["forward"] = self._forward(self._scale.scaled(chosen))
        return found | more, errors

    def of_samples(self, samples: Array) -> dict[str, float]:
        """Return what samples ``(M, K, D)`` say, whichever is chosen. Decoders that ask for the same have the same."""
        key = samples.tobytes()
        if key not in self._known:
            known = min(samples.shape[1], len(self._future))
            apart = self._scale.distances(samples[:, :known], self._future[:known]).mean(axis=1)
            nearest = float(apart.min())
            self._known[key] = {
                "random": float(apart.mean()),
                "best": nearest,
                "covered": float(nearest < COVERED),
                "spread": float(np.sqrt((self._scale.scaled(samples.std(axis=0)) ** 2).sum(axis=1).mean())),
                **strategies(self._scale.scaled(samples)),
            }
        return self._known[key]

    def _forward(self, chosen: Array) -> float:
        near = _nearer_half(chosen, self._strong, itself=True)
        return near if self._weak is None else near - _nearer_half(chosen, self._weak)


def strategies(samples: Array) -> dict[str, float]:
    """Return how many strategies scaled samples ``(N, K, D)`` show: the measures ``modes`` and ``disagreement``.

    A mode has samples that are not further apart than a change of strategy, as average linkage joins them. It counts
    from an eighth of the samples on, and there is at least one.
    """
    apart = pair_distances(samples, samples, "l2") / samples.shape[1]
    pairs = apart[np.triu_indices(len(apart), 1)]
    return {"modes": float(_modes(apart)), "disagreement": float((pairs > SWITCH_SHARE).mean()) if len(pairs) else 0.0}


def _modes(apart: Array) -> int:
    """Return the number of modes of N samples, of which ``(N, N)`` are the distances."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(apart) < 2:
        return 1
    owner = fcluster(linkage(squareform(apart, checks=False), "average"), SWITCH_SHARE, "distance")
    return max(1, int((np.bincount(owner)[1:] * SMALLEST_MODE >= len(apart)).sum()))


def _nearer_half(chosen: Array, others: Array, itself: bool = False) -> float:
    """Return the mean distance a step to the nearer half of ``others``; without the chosen one, if it is of them."""
    apart = pair_distances(chosen[None], others, "l2") / len(chosen)
    count = max(1, len(others) // 2)
    if itself and len(others) > 1 and apart.min() == 0.0:
        apart = np.delete(apart, apart.argmin(), axis=1)
    return float(smallest_sum(apart, count)[0]) / count

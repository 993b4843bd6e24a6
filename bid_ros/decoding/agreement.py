"""How many rows of a prediction its samples agree on.

The idea of setting the action horizon by it: Chen et al., "Dynamic Execution Commitment of Vision-Language-Action
Models", 2026 (arXiv 2605.11567). There a network verifies rows again; here the distance of the samples alone decides.
"""

import numpy as np
from numpy.typing import NDArray

from bid_ros.decoding.config import Weights


def agreed_rows(
    samples: NDArray[np.float64], chosen: NDArray[np.float64], largest: float, weights: Weights | None
) -> int:
    """Return how many rows, counted from the first one, the samples agree on.

    They agree on a row if they are at most ``largest`` from the chosen action on average, by the Euclidean distance.

    Args:
        samples: ``(N, T, D)``, the rows that can be executed.
        chosen: ``(T, D)``, the same rows of the decision.
        largest: distance, in action units times their weights.
        weights: factor of each action feature, ``(D,)``; None: 1.
    """
    difference = samples - chosen if weights is None else (samples - chosen) * np.array(weights)
    apart = np.linalg.norm(difference, axis=-1).mean(axis=0) > largest
    return int(apart.argmax()) if apart.any() else len(apart)

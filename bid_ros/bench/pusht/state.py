"""The state of Push-T at one instant, and the score of an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FULL_COVERAGE: Final = 0.95  # share of the mark from which on the published evaluation calls it covered


@dataclass(frozen=True, eq=False)
class PushTState:
    """One instant.

    Attributes:
        agent: ``(2,)`` px.
        block: ``(3,)`` x, y in px and angle in rad, 0 to 2 pi.
        keypoints: ``(9, 2)`` px, computed from the block's pose.
        coverage: share of the mark that the block covers now, 0 to 1.
    """

    agent: Array
    block: Array
    keypoints: Array
    coverage: float


def score(max_coverage: float) -> float:
    """Return an episode's score, 0 to 1: its largest coverage divided by 0.95, at most 1.

    As in the tables of Chi et al., "Diffusion Policy", RSS 2023, and Liu et al., "Bidirectional Decoding", ICLR 2025.
    """
    return min(max(max_coverage / FULL_COVERAGE, 0.0), 1.0)

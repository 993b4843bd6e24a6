"""Readings of the paper's description, which leaves pause, rollout length, what is counted and the distance open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bid_ros.bench.diagnostic.estimators import COUNTS, DISTANCES
from bid_ros.core.errors import BidError


@dataclass(frozen=True)
class Reading:
    """One reading.

    Attributes:
        pauses: idle actions of the demonstrator in s5, one number for each noise level; a single one is for all.
        steps: length of demonstrations and rollouts.
        count: what is counted, a name in ``COUNTS``.
        distance: how two distributions are compared, a name in ``DISTANCES``.

    Raises:
        BidError: for a value outside its range.
    """

    pauses: tuple[int, ...]
    steps: int
    count: str
    distance: str

    def __post_init__(self) -> None:
        if not self.pauses or min(self.pauses) < 0:
            raise BidError(f"pauses are {self.pauses}; valid are one or more whole numbers of at least 0")
        if not 10 <= self.steps <= 1000:
            raise BidError(f"steps is {self.steps}; valid is 10, the way to the goal, to 1000")
        if self.count not in COUNTS:
            raise BidError(f"count is '{self.count}'; valid are {', '.join(COUNTS)}")
        if self.distance not in DISTANCES:
            raise BidError(f"distance is '{self.distance}'; valid are {', '.join(DISTANCES)}")

    def pause(self, index: int) -> int:
        """Pause at the noise level of that index; the last one given holds for all that follow."""
        return self.pauses[min(index, len(self.pauses) - 1)]


READINGS: Final[Mapping[str, Reading]] = {
    # The text alone: always until the last five states were s5, which four idle actions make true; idle actions.
    "text": Reading((4,), 60, "idle", "wasserstein"),
    # The figure's caption: a long, a middle and a short pause for low, middle and high noise; time spent in s5.
    "caption": Reading((4, 2, 1), 60, "stay-s5", "wasserstein"),
    # The same with rollouts that end early, as far as the published best horizons need it.
    "fitted": Reading((4, 2, 2), 11, "stay-s5", "wasserstein"),
}

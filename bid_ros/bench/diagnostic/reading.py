"""Readings of the paper's description, which leaves pause, rollout length, what is counted and the distance open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.core.settings import settings


@settings
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

    pauses: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    steps: Annotated[int, Field(ge=10, le=1000)]
    count: Literal["idle", "idle-s5", "stay", "stay-s5"]
    distance: Literal["wasserstein", "total-variation", "summed"]

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

"""Checks that nothing of the tool comes into a place that is kept out, in many motions at once."""

from collections.abc import Iterator
from math import ceil, isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array
from bid_ros.core.shapes import DOWN, KeepOut, ToolBalls
from bid_ros.core.task import Task
from bid_ros.safety.bound import Bound
from bid_ros.safety.verdict import Verdict, refused

BETWEEN_M: Final = 0.0125  # of a part between two looks: the edge of a box is passed by a millimetre, unseen, no more
# No part goes 3 m from one row to the next. Other rules refuse that, and it may not use up the memory.
MOST_LOOKS: Final = 240

Counts = NDArray[np.bool_] | None


class GeometryEnvelope:
    """Checks the tool's parts against the places that a task keeps out.

    Between two rows the parts are looked at every :data:`BETWEEN_M` of the largest way of any part. A task that
    commands no rotation points the tool straight down.

    Args:
        task: its places and the parts of its tool. Without places every motion is free.

    Attributes:
        opening: measured opening of a gripper at rest, m, which says whether it holds something. None: nobody knows it.
    """

    def __init__(self, task: Task) -> None:
        self._places: tuple[KeepOut, ...] = task.limits.keep_out
        self._balls = ToolBalls(task.tool_shape) if self._places else None
        # A half-space that holds neither end of a way is not on it.
        self._boxes = any(place.normal is None for place in self._places)
        self._width = task.columns("gripper")
        self.opening: float | None = None

    def bounds(self, position: Array, rotation: Array | None, rows: Array, first: int = 0) -> Iterator[Bound]:
        """Yield the bound of motions of the tool.

        Args:
            position: ``(N, n, 3)`` m, base frame.
            rotation: ``(N, n, 3, 3)``, tool to base; None: straight down.
            rows: ``(N, n, D)``, the actions, for what the gripper is to hold.
            first: number of the first of these rows in its chunk, for a sentence.
        """
        if self._balls is None:
            return
        centres = self._balls.at(position, DOWN if rotation is None else rotation)
        ways = np.linalg.norm(np.diff(centres, axis=1), axis=-1) if self._boxes else np.array(-np.inf)
        counts = self._counting(rows)
        for place in self._places:
            yield self._bound(place, centres, ways, counts, first)

    def _counting(self, rows: Array) -> Counts:
        """Return which balls count in each row, ``(N, n, S)``, or in all, ``(S,)``; None: all do."""
        assert self._balls is not None
        if np.isinf(self._balls.held).all():
            return None
        asked = None if self._width is None else rows[..., self._width][..., 0]
        return self._balls.count(asked, self.opening)

    def _between(self, centres: Array, looks: int) -> Array:
        """Return centres ``(N, m, S, 3)`` with so many looks from each row of ``(N, n, S, 3)`` to the next."""
        if looks == 1 or centres.shape[1] < 2:
            return centres
        share = np.arange(looks) / looks
        start, step = centres[:, :-1, None], np.diff(centres, axis=1)[:, :, None]
        passed = (start + share[:, None, None] * step).reshape(len(centres), -1, *centres.shape[2:])
        return np.concatenate([passed, centres[:, -1:]], axis=1)

    def _looked(self, counts: Counts, near: NDArray[np.intp], looks: int) -> Counts:
        """Return which balls count in each look of some motions: as in the row before."""
        if counts is None or counts.ndim == 1:
            return counts
        repeated = np.repeat(counts[near], looks, axis=1)
        return repeated if looks == 1 else repeated[:, : 1 - looks]

    def _bound(self, place: KeepOut, centres: Array, ways: Array, counts: Counts, first: int) -> Bound:
        assert self._balls is not None
        clearance = place.clearance(centres, self._balls.radii)
        least = _counted(clearance, counts).min(axis=(1, 2))
        # A ball that is further from a place than half of its way, on average, does not come into it on the way.
        far = (least >= 0.0) & (clearance[:, :-1] + clearance[:, 1:] >= ways).all(axis=(1, 2))
        near = np.flatnonzero(~far)
        looks = _looks(ways[near]) if self._boxes and len(near) else 1
        if len(near):
            looked = place.clearance(self._between(centres[near], looks), self._balls.radii)
            clearance = _counted(looked, self._looked(counts, near, looks))
            least[near] = clearance.min(axis=(1, 2))

        def refusal(number: int) -> Verdict:
            assert self._balls is not None
            looked = clearance[np.searchsorted(near, number)]
            look, ball = np.unravel_index(int(looked.argmin()), looked.shape)
            row, deep = first + int(look) // looks, float(least[number])
            what = f"'{self._balls.names[ball]}' comes {-1e3 * deep:.1f} mm into '{place.name}' at action {row}"
            return refused("keep_out", f"{what}; valid is outside", deep, 0.0, row)

        return Bound(np.asarray(least >= 0.0), refusal)


def _looks(ways: Array) -> int:
    """Return the number of looks from one row to the next for ways ``(N, n, S)`` of the parts in m."""
    way = float(ways.max(initial=0.0))
    return min(max(1, ceil(way / BETWEEN_M)), MOST_LOOKS) if isfinite(way) else 1


def _counted(clearance: Array, counts: Counts) -> Array:
    return clearance if counts is None else np.where(counts, clearance, np.inf)

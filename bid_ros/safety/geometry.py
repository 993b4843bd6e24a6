"""Checks that nothing of the tool comes into a place that is kept out, in many motions at once."""

from collections.abc import Iterator
from math import ceil
from typing import Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array
from bid_ros.core.shapes import DOWN, KeepOut, ToolBalls
from bid_ros.core.task import Task
from bid_ros.safety.bound import Bound
from bid_ros.safety.verdict import Verdict, refused

BETWEEN_M: Final = 0.0125  # of the tool between two looks: the edge of a box is passed by a millimetre, unseen, no more


class GeometryEnvelope:
    """Checks the tool's parts against the places that a task keeps out.

    Between two rows the parts are looked at every :data:`BETWEEN_M` of the fastest motion. A task that commands no
    rotation points the tool straight down.

    Args:
        task: its places and the parts of its tool. Without places every motion is free.
    """

    def __init__(self, task: Task) -> None:
        self._places: tuple[KeepOut, ...] = task.limits.keep_out
        self._balls = ToolBalls(task.tool_shape) if self._places else None
        boxes = any(place.normal is None for place in self._places)
        self._looks = ceil(task.limits.max_speed * task.dt_ns / NANOSECONDS / BETWEEN_M) if boxes else 1

    def bounds(self, position: Array, rotation: Array | None, first: int = 0) -> Iterator[Bound]:
        """Yield the bound of motions of the tool.

        Args:
            position: ``(N, n, 3)`` m, base frame.
            rotation: ``(N, n, 3, 3)``, tool to base; None: straight down.
            first: number of the first of these rows in its chunk, for a sentence.
        """
        if self._balls is None:
            return
        centres = self._balls.at(position, DOWN if rotation is None else rotation)
        ways = np.linalg.norm(np.diff(centres, axis=1), axis=-1) if self._looks > 1 else np.array(-np.inf)
        for place in self._places:
            yield self._bound(place, centres, ways, first)

    def _between(self, centres: Array) -> Array:
        """Return centres ``(N, m, S, 3)`` with looks between the rows of ``(N, n, S, 3)``."""
        if self._looks == 1 or centres.shape[1] < 2:
            return centres
        share = np.arange(self._looks) / self._looks
        start, step = centres[:, :-1, None], np.diff(centres, axis=1)[:, :, None]
        passed = (start + share[:, None, None] * step).reshape(len(centres), -1, *centres.shape[2:])
        return np.concatenate([passed, centres[:, -1:]], axis=1)

    def _bound(self, place: KeepOut, centres: Array, ways: Array, first: int) -> Bound:
        assert self._balls is not None
        clearance = place.clearance(centres, self._balls.radii)
        least = clearance.min(axis=(1, 2))
        # A ball that is further from a place than half of its way, on average, does not come into it on the way.
        far = (least >= 0.0) & (clearance[:, :-1] + clearance[:, 1:] >= ways).all(axis=(1, 2))
        near = np.flatnonzero(~far)
        if len(near):
            clearance = place.clearance(self._between(centres[near]), self._balls.radii)
            least[near] = clearance.min(axis=(1, 2))

        def refusal(number: int) -> Verdict:
            assert self._balls is not None
            looked = clearance[np.searchsorted(near, number)]
            look, ball = np.unravel_index(int(looked.argmin()), looked.shape)
            row, deep = first + int(look) // self._looks, float(least[number])
            what = f"'{self._balls.names[ball]}' comes {-1e3 * deep:.1f} mm into '{place.name}' at action {row}"
            return refused("keep_out", f"{what}; valid is outside", deep, 0.0, row)

        return Bound(np.asarray(least >= 0.0), refusal)

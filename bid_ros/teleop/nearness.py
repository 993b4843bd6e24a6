"""How far the tool is from the walls of its workspace, from places that are kept out, and from its largest tilt."""

from dataclasses import dataclass
from math import acos, degrees
from typing import Final

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.core.shapes import ToolBalls
from bid_ros.core.task import Task

NEAR_M: Final = 0.03  # a person who drives stops 1 cm before a wall
NEAR_RAD: Final = 0.1


@dataclass(frozen=True)
class Nearness:
    """A limit, and how far the tool is from it.

    Attributes:
        text: both in words, for a person.
        near: it is close enough to say so.
    """

    text: str
    near: bool


class ToolLimits:
    """The limits of a task that a measured pose of the tool can be compared with.

    Args:
        task: its workspace, places and tilt.
    """

    def __init__(self, task: Task) -> None:
        limits = task.limits
        self._low, self._high = np.array(limits.workspace_min), np.array(limits.workspace_max)
        self._places = limits.keep_out
        self._balls = ToolBalls(task.tool_shape) if limits.keep_out else None
        self._tilt = limits.max_tilt if task.columns("rotation_6d") is not None else None

    def near(self, position: Array, rotation: Array, opening: float | None) -> list[Nearness]:
        """Return the nearest limit of the place, and that of the tilt if it is close.

        Args:
            position, rotation: ``(3,)`` m and ``(3, 3)`` of the tool, base frame.
            opening: as :func:`bid_ros.core.shapes.opening_at_rest`.
        """
        away, what = min(self._walls(position) + self._clearances(position, rotation, opening))
        found = [Nearness(f"{100 * abs(away):.0f} cm {'to' if away >= 0.0 else 'beyond'} {what}", away < NEAR_M)]
        if self._tilt is not None:
            tilt = acos(min(1.0, max(-1.0, -float(rotation[2, 2]))))
            if self._tilt - tilt < NEAR_RAD:
                found.append(Nearness(f"tilted {degrees(tilt):.0f} of {degrees(self._tilt):.0f} degrees", True))
        return found

    def _walls(self, position: Array) -> list[tuple[float, str]]:
        low = [(float(away), f"the wall at -{axis}") for away, axis in zip(position - self._low, "xyz", strict=True)]
        high = [(float(away), f"the wall at +{axis}") for away, axis in zip(self._high - position, "xyz", strict=True)]
        return low + high

    def _clearances(self, position: Array, rotation: Array, opening: float | None) -> list[tuple[float, str]]:
        if self._balls is None:
            return []
        centres, counts = self._balls.at(position, rotation), self._balls.count(None, opening)
        return [
            (float(place.clearance(centres, self._balls.radii)[counts].min()), f"'{place.name}'")
            for place in self._places
            if counts.any()
        ]

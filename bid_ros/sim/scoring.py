"""Success of a placement, judged from physics: the object is in the cup and the gripper has let go of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.sim.geometry import CUP_HEIGHT, OBJECT_DIAMETER, OBJECT_LENGTH, OBJECT_RADIUS, cup_inner_radius

Placement = Literal["pending", "success", "dropped"]


@dataclass(frozen=True)
class ScoreConfig:
    """When a placement counts.

    Attributes:
        hold_s: s for which the object must be in the cup and released (or lie outside) without interruption.
        depth: m by which the object's lower end must be below the rim.
        release_margin: m by which the opening width must exceed the object's diameter to count as released.
    """

    hold_s: float = 0.3
    depth: float = 0.02
    release_margin: float = 0.004

    def __post_init__(self) -> None:
        for name, high in (("hold_s", 10.0), ("depth", CUP_HEIGHT), ("release_margin", 0.04)):
            value = getattr(self, name)
            if not 0 < value <= high:
                raise ValueError(f"score: {name} is {value}; valid is above 0 to {high}")


class PlacementScore:
    """Follows the states of one episode and says how it stands. All positions in m, all in one frame, z up.

    ``dropped`` means: on the table (or below it) outside the cup and not between the fingers, for ``hold_s``.
    The first outcome stays until :meth:`reset`.
    """

    def __init__(self, config: ScoreConfig | None = None) -> None:
        self._config = config or ScoreConfig()
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""
        self.outcome: Placement = "pending"
        self._candidate: Placement = "pending"
        self._since_ns = 0

    def update(
        self,
        now_ns: int,
        cup_position: ArrayLike,
        object_position: ArrayLike,
        object_quaternion: ArrayLike,
        gripper_width: float,
    ) -> Placement:
        """Judge one state.

        Args:
            now_ns: time of the state, not decreasing.
            cup_position: ``(3,)`` centre of the cup's foot; the cup stands upright.
            object_position: ``(3,)`` centre of the object.
            object_quaternion: ``(4,)`` xyzw; the object's axis is its z.
            gripper_width: opening width in m.
        """
        candidate = self._judge(cup_position, object_position, object_quaternion, gripper_width)
        if candidate != self._candidate:
            self._candidate, self._since_ns = candidate, now_ns
        held_for = (now_ns - self._since_ns) / 1e9
        if self.outcome == "pending" and candidate != "pending" and held_for >= self._config.hold_s:
            self.outcome = candidate
        return self.outcome

    def _judge(self, cup: ArrayLike, position: ArrayLike, quaternion: ArrayLike, width: float) -> Placement:
        foot, centre = np.asarray(cup, dtype=np.float64), np.asarray(position, dtype=np.float64)
        axis = _z_axis(quaternion)
        if inside_cup(centre - foot, axis, self._config.depth):
            return "success" if width > OBJECT_DIAMETER + self._config.release_margin else "pending"
        held = abs(width - OBJECT_DIAMETER) <= self._config.release_margin
        lowest = centre[2] - foot[2] - abs(axis[2]) * OBJECT_LENGTH / 2 - OBJECT_RADIUS * math.hypot(axis[0], axis[1])
        return "dropped" if lowest < 0.005 and not held else "pending"


def inside_cup(centre: NDArray[np.float64], axis: NDArray[np.float64], depth: float) -> bool:
    """Whether the object is in the cup.

    Args:
        centre: ``(3,)`` centre of the object relative to the cup's foot, m.
        axis: ``(3,)`` unit vector along the object.
        depth: m by which the lower end must be below the rim.
    """
    lower = centre - axis * math.copysign(OBJECT_LENGTH / 2, axis[2])
    if not -0.005 <= lower[2] <= CUP_HEIGHT - depth:
        return False
    points = (centre, lower)
    return all(math.hypot(p[0], p[1]) <= cup_inner_radius(float(p[2])) for p in points)


def _z_axis(quaternion: ArrayLike) -> NDArray[np.float64]:
    x, y, z, w = np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)
    return np.array([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)])

"""Seeded smooth paths of the cup over the table, as if a person held and slowly moved it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.sim.soft_start import travelled
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import check_episode
from bid_ros.tasks.placing.geometry import CUP_X, CUP_Y

MIN_TURN_RADIUS: Final = 0.015  # m, the sharpest turn of a path

_SPACING: Final = 1e-4  # m between the tabulated points; chords of it deviate from the curve by less than 0.1 um
_CURVE_POINTS: Final = 720
_SHAPES: Final = 200  # tried for one start


class CupPath:
    """The position of the cup's axis over time: along a closed smooth curve, at constant speed after a smooth start.

    Args:
        points: ``(n, 2)`` base-frame positions in m, evenly spaced along the closed curve; row 0 is the start.
        spacing: arc length in m between two rows.
        speed: speed along the curve in m/s; 0: the cup stands at row 0.
    """

    def __init__(self, points: Array, spacing: float, speed: float) -> None:
        self._points, self._spacing, self.speed = points, spacing, speed

    def position(self, t_s: float) -> Array:
        """Position ``(2,)`` in m, base frame, ``t_s`` seconds after the start of the path."""
        place = travelled(self.speed, t_s) / self._spacing
        row = int(place)
        share = place - row
        count = len(self._points)
        now, ahead = self._points[row % count], self._points[(row + 1) % count]
        return np.array([now[0] + share * (ahead[0] - now[0]), now[1] + share * (ahead[1] - now[1])])


@dataclass(frozen=True)
class EpisodeScene:
    """Layout of one episode, the same for a seed at every cup speed.

    Attributes:
        cup_start: ``(2,)`` position of the cup's axis on the table, m, base frame.
        path: path of the cup from there.
    """

    cup_start: Array
    path: CupPath


def episode_scene(seed: int, speed: float = 0.03) -> EpisodeScene:
    """Return the layout of a seed.

    Args:
        seed: 0 or more.
        speed: m/s along the path, 0 for a static cup.

    Raises:
        TaskError: the seed is negative, or the speed is not valid.
    """
    check_episode(seed, speed, "cup")
    rng = np.random.default_rng(seed)
    rng.random(3)  # once the start of the tool: without these draws every seed would have another cup
    while True:
        cup_start = np.array([rng.uniform(*CUP_X), rng.uniform(*CUP_Y)])
        curve = _closed_curve(cup_start, rng)
        if curve is not None:
            points, spacing = _evenly_spaced(curve)
            return EpisodeScene(cup_start, CupPath(points, spacing, speed))


def _closed_curve(start: Array, rng: np.random.Generator) -> Array | None:
    """Closed curve ``(n, 2)`` through ``start`` (row 0) inside the cup's range that turns nowhere too sharply.

    None if none of a few random shapes fits: no such curve reaches into the corners of the range.
    """
    low, high = np.array([CUP_X[0], CUP_Y[0]]), np.array([CUP_X[1], CUP_Y[1]])
    largest = high - low
    for _ in range(_SHAPES):
        shape = _harmonic_shape(rng)
        if _sharpest_radius(shape * largest) < MIN_TURN_RADIUS:
            continue
        # Try smaller and smaller copies until one fits with its point k on the start.
        for scale in np.linspace(1.0, 0.3, 8):
            curve = shape * largest * scale
            if _sharpest_radius(curve) < MIN_TURN_RADIUS:
                break
            offsets = start - curve
            lowest, highest = curve.min(axis=0) + offsets, curve.max(axis=0) + offsets
            fitting = np.flatnonzero(((lowest >= low) & (highest <= high)).all(axis=1))
            if fitting.size:
                first = int(rng.choice(fitting))
                return np.asarray(np.roll(curve + offsets[first], -first, axis=0))
    return None


def _harmonic_shape(rng: np.random.Generator) -> Array:
    """Random closed curve ``(n, 2)`` of three harmonics that fills a unit square."""
    phase = np.linspace(0.0, 2 * np.pi, _CURVE_POINTS, endpoint=False)
    order = np.arange(1, 4)
    weights = rng.normal(size=(2, 3)) / order
    shifts = rng.uniform(0.0, 2 * np.pi, size=(2, 3))
    curve = (weights[:, :, None] * np.sin(order[None, :, None] * phase + shifts[:, :, None])).sum(axis=1).T
    spread: Array = curve.max(axis=0) - curve.min(axis=0)
    return np.asarray(curve / spread)


def _sharpest_radius(curve: Array) -> float:
    """Smallest radius of curvature in m of a closed curve sampled evenly in its parameter."""
    first = (np.roll(curve, -1, axis=0) - np.roll(curve, 1, axis=0)) / 2
    second = np.roll(curve, -1, axis=0) - 2 * curve + np.roll(curve, 1, axis=0)
    turning = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return float((np.hypot(*first.T) ** 3 / np.maximum(turning, 1e-15)).min())


def _evenly_spaced(curve: Array) -> tuple[Array, float]:
    """Resample a closed curve evenly in arc length; returns the points and their spacing in m."""
    closed = np.vstack([curve, curve[:1]])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    count = max(1, round(along[-1] / _SPACING))
    places = np.arange(count) * (along[-1] / count)
    return np.column_stack([np.interp(places, along, closed[:, axis]) for axis in (0, 1)]), float(along[-1] / count)

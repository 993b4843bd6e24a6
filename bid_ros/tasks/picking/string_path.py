"""Seeded layouts of the picking task: positions of cup and saucer, and the path along which a string pulls the cup."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import TaskError
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import check_episode
from bid_ros.tasks.picking.geometry import CUP_X, CUP_Y, SAUCER_X, SAUCER_Y

RADIUS: Final = (0.05, 0.09)  # m, range of the curve's radius


@dataclass(frozen=True)
class StringPath:
    """The path of the cup over the table: an arc that never ends, so that the cup still moves at a late grasp.

    Attributes:
        start: ``(2,)`` position of the cup's axis at distance 0, m, base frame.
        heading: direction in which it leaves, rad from the base's x axis.
        curvature: 1/m, positive to the left; the radius of the arc is its inverse.
        speed: along the arc, m/s; 0: the cup stands.

    Raises:
        TaskError: the curvature is zero, or the arc leaves the range of the cup.
    """

    start: tuple[float, float]
    heading: float
    curvature: float
    speed: float

    def __post_init__(self) -> None:
        if not 0.0 < abs(self.curvature) < math.inf:
            raise TaskError(f"the string's curvature is {self.curvature} 1/m; valid is finite and not 0")
        # The whole circle lies where the demonstrations have cups.
        slack, (low, high) = abs(1 / self.curvature) - 1e-9, np.transpose([CUP_X, CUP_Y])
        if (self.centre - slack < low).any() or (self.centre + slack > high).any():
            raise TaskError(
                f"the string's arc of radius {abs(1 / self.curvature):.3f} m from {self.start} leaves the cup's range; "
                f"valid is x {CUP_X[0]} to {CUP_X[1]}, y {CUP_Y[0]} to {CUP_Y[1]} m"
            )

    @property
    def centre(self) -> Array:
        """Middle ``(2,)`` of the arc, m, base frame."""
        return np.array(self.start) + np.array([-math.sin(self.heading), math.cos(self.heading)]) / self.curvature

    def position(self, distance: float) -> Array:
        """Position ``(2,)`` in m, base frame, after ``distance`` m along the arc."""
        turned = self.heading + self.curvature * distance
        return self.centre + np.array([math.sin(turned), -math.cos(turned)]) / self.curvature

    def direction(self, distance: float) -> Array:
        """Unit vector ``(2,)``, base frame, along the arc after ``distance`` m."""
        turned = self.heading + self.curvature * distance
        return np.array([math.cos(turned), math.sin(turned)])


@dataclass(frozen=True)
class PickingLayout:
    """Layout of one episode, the same for a seed at every speed.

    Attributes:
        saucer: ``(2,)`` middle of the saucer on the table, m, base frame.
        path: where the cup starts, and where the string pulls it.
    """

    saucer: Array
    path: StringPath

    @property
    def cup_start(self) -> Array:
        """Position ``(2,)`` of the cup's axis at the start, m, base frame."""
        return np.array(self.path.start)


def picking_layout(seed: int, speed: float = 0.02) -> PickingLayout:
    """Return the layout of a seed.

    Args:
        seed: 0 or more.
        speed: speed of the string in m/s; 0 for a static cup.

    Raises:
        TaskError: the seed is negative, or the speed is not valid.
    """
    check_episode(seed, speed, "cup")
    rng = np.random.default_rng(seed)
    saucer = np.array([rng.uniform(*SAUCER_X), rng.uniform(*SAUCER_Y)])
    radius, sign = rng.uniform(*RADIUS), rng.choice((-1.0, 1.0))
    # A circle anywhere in the range, then any point of it: every such arc stays in the range for ever.
    centre = np.array([rng.uniform(low + radius, high - radius) for low, high in (CUP_X, CUP_Y)])
    angle = rng.uniform(-math.pi, math.pi)
    x, y = centre + radius * np.array([math.cos(angle), math.sin(angle)])
    path = StringPath((float(x), float(y)), float(angle + sign * math.pi / 2), float(sign / radius), speed)
    return PickingLayout(saucer, path)

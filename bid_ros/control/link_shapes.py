"""Shapes of an arm's links, for distances by Coal: capsules, and what a URDF says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.rotation import Array

Point: TypeAlias = tuple[float, float, float]
Capsule: TypeAlias = tuple[int, Point, Point, float]
"""Number of the joint that moves it, 0: the base; both ends and the radius, m, in the frame of that joint."""


@dataclass(frozen=True, eq=False)
class LinkShape:
    """A part of an arm.

    Attributes:
        name: that a refusal says.
        joint: number of the joint that moves it; 0: the base.
        geometry: one of Coal's.
        position: ``(3,)`` m, of its middle in the joint's frame; rotation: ``(3, 3)``.
    """

    name: str
    joint: int
    geometry: Any
    position: Array
    rotation: Array


def capsule(begin: ArrayLike, end: ArrayLike, radius: float) -> tuple[Any, Array, Array]:
    """Return Coal's capsule between two points ``(3,)`` m, its middle ``(3,)`` and rotation ``(3, 3)``; or a sphere."""
    from pinocchio import coal

    first, last = np.asarray(begin, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(last - first))
    if length < 1e-9:
        return coal.Sphere(radius), first, np.eye(3)
    return coal.Capsule(radius, length), 0.5 * (first + last), turned_to((last - first) / length)


def capsules(links: Iterable[Capsule]) -> tuple[LinkShape, ...]:
    """Return the shapes of links that are capsules."""
    return tuple(LinkShape(f"link {joint}", joint, *capsule(begin, end, radius)) for joint, begin, end, radius in links)


def turned_to(axis: Array) -> Array:
    """Return a rotation ``(3, 3)`` that turns z into an axis ``(3,)`` of length 1."""
    across = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(across, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)

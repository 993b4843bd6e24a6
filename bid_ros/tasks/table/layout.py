"""Seeded layouts of the objects on a table: where an episode puts them, and how a person moves some of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import TaskError
from bid_ros.core.objects import SceneObject
from bid_ros.sim.soft_start import travelled
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import check_episode

APART: Final = 0.005  # m between two objects at the start
TRIES: Final = 300
RADIUS: Final = (0.25, 0.5)  # of a person's circle, share of the smaller side of the start region


@dataclass(frozen=True)
class Circle:
    """The path on which a person moves an object: round and round, after a smooth start.

    Attributes:
        centre: ``(2,)`` m, base frame.
        radius: m.
        angle: rad, of the start.
        speed: m/s, counter-clockwise if positive.
    """

    centre: Array
    radius: float
    angle: float
    speed: float

    def position(self, t_s: float) -> Array:
        """Position ``(2,)`` in m, base frame, ``t_s`` seconds after the start."""
        angle = self.angle + travelled(self.speed, t_s) / self.radius
        return self.centre + self.radius * np.array([math.cos(angle), math.sin(angle)])


@dataclass(frozen=True)
class ObjectLayout:
    """How an episode begins.

    Attributes:
        poses: of each object's middle, by name: ``(3,)`` m, base frame, and the angle in rad by which it is turned.
        circles: of the objects that a person moves.
    """

    poses: Mapping[str, tuple[Array, float]]
    circles: Mapping[str, Circle]


def object_layout(objects: Sequence[SceneObject], seed: int, speed: float = 0.0) -> ObjectLayout:
    """Return the layout of a seed, the same at every speed.

    Args:
        objects: of the task.
        seed: 0 or more.
        speed: m/s of what a person moves; 0: it stands.

    Raises:
        TaskError: seed or speed is not valid, a person moves nothing, or there is no room for an object.
    """
    moved = [item.name for item in objects if item.moved_by == "person"]
    check_episode(seed, speed, moved[0] if moved else "target")
    if speed and not moved:
        raise TaskError(f"target speed is {speed} m/s; valid is 0, as a person moves no object of this task")
    random = np.random.default_rng([seed, 3])
    poses: dict[str, tuple[Array, float]] = {}
    circles: dict[str, Circle] = {}
    for item in objects:
        for _ in range(TRIES):
            circle = _circle(item, speed, random) if item.moved_by == "person" else None
            place = random.uniform(item.start_min, item.start_max) if circle is None else circle.position(0.0)
            if all(_apart(item, place, other, poses[other.name][0]) for other in objects[: len(poses)]):
                break
        else:
            raise TaskError(f"objects: no room for '{item.name}' beside the others; valid is a larger start region")
        turn = float(random.uniform(-item.start_turn, item.start_turn)) if item.start_turn else 0.0
        poses[item.name] = np.append(place, item.height / 2), turn
        if circle is not None:
            circles[item.name] = circle
    return ObjectLayout(poses, circles)


def _circle(item: SceneObject, speed: float, random: np.random.Generator) -> Circle:
    low, high = np.array(item.start_min), np.array(item.start_max)
    radius = float(random.uniform(*RADIUS) * (high - low).min())
    centre, angle = random.uniform(low + radius, high - radius), float(random.uniform(-math.pi, math.pi))
    return Circle(centre, radius, angle, speed * float(random.choice((-1.0, 1.0))))


def _apart(one: SceneObject, at: Array, other: SceneObject, there: Array) -> bool:
    if "mark" in (one.shape, other.shape):
        return True
    return math.dist(at, there[:2]) >= radius_of(one) + radius_of(other) + APART


def radius_of(item: SceneObject) -> float:
    """Radius of a circle around what it covers of the table, m."""
    return item.size[0] / 2 if item.shape in ("cylinder", "sphere") else math.hypot(item.size[0], item.size[1]) / 2

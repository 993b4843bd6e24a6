"""Shapes of what is around the arm, and of what its tool carries: planes, boxes, spheres and capsules."""

import math
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import Array
from bid_ros.core.settings import Positive, Vector3, settings

SPARE_M: Final = 0.001  # by which the balls that a capsule is made of are larger than the capsule
FARTHEST_M: Final = 2.0  # of a part from the tool's frame
HELD_M: Final = 0.008  # by which the opening of a gripper that holds an object may differ from what the task says
DOWN: Final = np.diag([1.0, -1.0, -1.0])  # rotation of a tool that points straight down
Name = Annotated[str, Field(min_length=1, max_length=40)]


@settings(error=TaskError)
class KeepOut:
    """A place where nothing of the tool may be: a box, or what lies behind a plane.

    Attributes:
        name: that a refusal says.
        box_min, box_max: corners of a box, m, in the task's frame.
        normal: of a plane, pointing away from the side that is kept out of. Its length does not count.
        offset: of the plane from the origin along the normal, m.
    """

    name: Name
    box_min: Vector3 | None = None
    box_max: Vector3 | None = None
    normal: Vector3 | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        box, plane = (self.box_min, self.box_max), (self.normal, self.offset)
        whole = (None not in box) != (None not in plane)
        if not whole or (None not in box and plane != (None, None)) or (None not in plane and box != (None, None)):
            raise TaskError(
                f"keep_out '{self.name}' is no shape; valid is a box of box_min and box_max, or a plane of normal and "
                "offset"
            )
        for low, high, axis in zip(self.box_min or (), self.box_max or (), "xyz", strict=False):
            if not low < high:
                raise TaskError(f"keep_out '{self.name}': {axis} runs from {low} to {high}; valid is min < max")
        if self.normal is not None and not math.hypot(*self.normal) > 1e-6:
            raise TaskError(f"keep_out '{self.name}': normal is {list(self.normal)}; valid is a direction")

    def clearance(self, centres: Array, radii: Array) -> Array:
        """Return the distances ``(..., S)`` m of balls from the place; negative: so deep is a ball in it.

        Args:
            centres: ``(..., S, 3)`` m.
            radii: ``(S,)`` m.
        """
        if self.normal is not None:
            normal = np.array(self.normal) / math.hypot(*self.normal)
            apart: Array = centres @ normal - (self.offset or 0.0) - radii
            return apart
        outside = np.maximum(np.array(self.box_min) - centres, centres - np.array(self.box_max))
        beyond = np.maximum(outside, 0.0)
        away: Array = np.sqrt((beyond * beyond).sum(axis=-1)) + np.minimum(outside.max(axis=-1), 0.0)
        return away - radii


@settings(error=TaskError)
class ToolPart:
    """A part of what moves with the tool: a finger, a camera's mount, a held object. A sphere or a capsule.

    Attributes:
        name: that a refusal says.
        begin: centre of the sphere, or of one end of the capsule, m, in the tool's frame.
        end: centre of the other end; none: it is a sphere.
        radius: m.
        held: opening of the gripper that holds it, m, of an object that counts only while the gripper holds something.
            None: it always counts.
    """

    name: Name
    begin: Vector3
    radius: Positive
    end: Vector3 | None = None
    held: Positive | None = None

    def __post_init__(self) -> None:
        for place in (self.begin, self.end or self.begin):
            if not math.hypot(*place) <= FARTHEST_M:
                raise TaskError(
                    f"tool_shape '{self.name}' has an end at {list(place)}; valid is up to {FARTHEST_M:g} m away"
                )

    def balls(self) -> tuple[Array, Array]:
        """Return centres ``(S, 3)`` and radii ``(S,)`` of balls that cover it, m, :data:`SPARE_M` larger at most."""
        begin, end = np.array(self.begin), np.array(self.end or self.begin)
        apart, radius = float(np.linalg.norm(end - begin)), self.radius
        if apart < 1e-9:
            return begin[None], np.array([radius])
        longest = 2.0 * math.sqrt((radius + SPARE_M) ** 2 - radius**2)
        steps = math.ceil(apart / longest)
        centres = begin + np.linspace(0.0, 1.0, steps + 1)[:, None] * (end - begin)
        return centres, np.full(steps + 1, math.hypot(radius, apart / steps / 2))


class ToolBalls:
    """All parts of a tool as balls.

    Args:
        parts: of the tool, at least one.

    Attributes:
        centres, radii: ``(S, 3)`` and ``(S,)`` m, tool frame.
        names: of the part of each ball.
        held: ``(S,)`` opening of the gripper that holds each ball, m; infinite: it always counts.
    """

    def __init__(self, parts: tuple[ToolPart, ...]) -> None:
        balls = [part.balls() for part in parts]
        self.centres = np.concatenate([centres for centres, _ in balls])
        self.radii = np.concatenate([radii for _, radii in balls])
        each = [part for part, (_, radii) in zip(parts, balls, strict=True) for _ in radii]
        self.names = [part.name for part in each]
        self.held = np.array([math.inf if part.held is None else part.held for part in each])

    def count(self, asked: Array | None, measured: float | None) -> NDArray[np.bool_]:
        """Return which balls count, ``(..., S)``: of a held object only while the gripper holds something.

        An object is let go with the row that asks for a wider opening.

        Args:
            asked: ``(...)`` m, commanded openings; None: nobody commands the gripper.
            measured: m, of a gripper at rest; None: nobody knows it, and what is commanded says alone what is held.
        """
        least, most, always = self.held - HELD_M, self.held + HELD_M, np.isinf(self.held)
        holds: NDArray[np.bool_] = always | (measured is None or (least <= measured) & (measured <= most))
        return holds if asked is None else np.asarray(holds & (asked[..., None] <= most))

    def at(self, position: Array, rotation: Array) -> Array:
        """Return the centres ``(..., S, 3)`` m with the tool at poses ``(..., 3)`` m, ``(..., 3, 3)``; base frame."""
        # One product of two matrices: hundreds of small ones take several times as long.
        turned = (np.ascontiguousarray(rotation).reshape(-1, 3) @ self.centres.T).reshape(*rotation.shape[:-1], -1)
        placed: Array = np.swapaxes(position[..., None] + turned, -1, -2)
        return placed


def opening_at_rest(width: float, busy: bool) -> float | None:
    """Return the opening that says what a gripper holds, m; None: nobody measures it.

    Infinite while it moves: then it holds nothing yet, or nothing any more.
    """
    opening = math.inf if busy else float(width)
    return None if math.isnan(opening) else opening


def check_names(what: str, names: list[str]) -> None:
    """Raise TaskError unless the names differ."""
    if len(set(names)) != len(names):
        raise TaskError(f"{what} names {', '.join(names)}; valid are different names")


def check_held(parts: tuple[ToolPart, ...], widest: float) -> None:
    """Raise TaskError unless a gripper that opens ``widest`` m can hold the held objects."""
    for part in parts:
        if part.held is not None and not part.held <= widest:
            what = f"tool_shape '{part.name}' is held at an opening of {part.held:g} m"
            raise TaskError(f"{what}; valid is up to gripper_max, {widest:g} m")


def check_free(
    keep_out: tuple[KeepOut, ...], parts: tuple[ToolPart, ...], low: Vector3, high: Vector3, where: str
) -> None:
    """Raise TaskError if a tool that points straight down in a box is in a place that is kept out.

    Args:
        keep_out: the places.
        parts: of the tool.
        low, high: corners of the box of the tool, m.
        where: what the box is, for the sentence.
    """
    balls = ToolBalls(parts)
    axes = [np.linspace(*ends, 5) for ends in zip(low, high, strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    centres = balls.at(places, DOWN)
    for place in keep_out:
        clearance = place.clearance(centres, balls.radii)
        row, ball = np.unravel_index(int(clearance.argmin()), clearance.shape)
        if clearance[row, ball] < 0.0:
            x, y, z = places[row].tolist()
            raise TaskError(
                f"{where}: with the tool at [{x:.3f}, {y:.3f}, {z:.3f}] m, '{balls.names[ball]}' is "
                f"{-1e3 * clearance[row, ball]:.0f} mm inside keep_out '{place.name}'; valid is a box free of it"
            )

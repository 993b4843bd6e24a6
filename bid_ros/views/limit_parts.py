"""Limits of a task as parts of a scene: those it has, and those that ``bid calibrate limits`` measures."""

import json
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.shapes import KeepOut
from bid_ros.core.task import Task
from bid_ros.views.drawn import Array, Box, Lines, Part, Rgb, plain_lines

START: Final = (200, 200, 200)
KEEP_OUT: Final = (190, 70, 60)
MEASURED: Final = (255, 90, 220)
OPACITY: Final = 160
WIDTH: Final = 0.003  # m
CROSS_M: Final = 0.01  # of a point, either way
_NOTHING: Final = np.empty((0, 0, 3))


def limit_parts(task: Task) -> list[Part]:
    """Return the start box of a task and the places that it keeps out."""
    box = np.array([task.limits.workspace_min, task.limits.workspace_max])
    found: list[Part] = [_place(place, box) for place in task.limits.keep_out]
    if task.start is not None:
        found.append(Box("start", task.start.tool_min, task.start.tool_max, (*START, OPACITY)))
    return found


def measured_parts(text: str, task: Task) -> list[Part]:
    """Return what a message of ``bid calibrate limits`` shows; every part, also without lines, replaces the one before.

    Args:
        text: JSON: ``table`` with normal and offset, ``workspace`` and ``start`` with low and high, and ``points``.
            Each may be missing. What is no such text shows nothing.
        task: its workspace, where none was measured.
    """
    try:
        said = json.loads(text)
        workspace = said.get("workspace") or {"low": task.limits.workspace_min, "high": task.limits.workspace_max}
        box = _finite([workspace["low"], workspace["high"]], (2, 3))
        table = _NOTHING
        if "table" in said:
            normal, offset = _finite(said["table"]["normal"], (3,)), float(_finite(said["table"]["offset"], ()))
            table = _outline(normal / np.linalg.norm(normal), offset, box)
        boxes = [_edges(said.get(name)) for name in ("workspace", "start")]
        points = _crosses(said.get("points", []))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return []
    names = ("table", "workspace", "start", "points")
    return [_lines(f"new/{name}", lines, MEASURED) for name, lines in zip(names, (table, *boxes, points), strict=True)]


def _place(place: KeepOut, box: Array) -> Part:
    name = f"keep_out/{place.name}"
    if place.box_min is not None and place.box_max is not None:
        return Box(name, place.box_min, place.box_max, (*KEEP_OUT, OPACITY))
    normal = np.array(place.normal, dtype=np.float64)
    return _lines(name, _outline(normal / np.linalg.norm(normal), place.offset or 0.0, box), KEEP_OUT)


def _outline(normal: Array, offset: float, box: Array) -> Array:
    """Return the rectangle ``(1, 5, 3)`` m of a plane that is as large as a box before it.

    Args:
        normal: ``(3,)`` unit vector.
        offset: of the plane along it, m.
        box: ``(2, 3)`` m, lower and upper corner.
    """
    # Along the axis of the base that lies in the plane best, and across it.
    first = np.eye(3)[np.abs(normal).argmin()]
    first = first - normal * (first @ normal)
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    corners = np.array([*product(*box.T)])
    (left, right), (near, far) = (
        ((corners @ axis).min() * axis, (corners @ axis).max() * axis) for axis in (first, second)
    )
    ring = [left + near, right + near, right + far, left + far]
    return np.array([[*ring, ring[0]]]) + normal * offset


def _edges(said: Any) -> Array:
    """Return the edges ``(12, 2, 3)`` m of a box that a message says; none if it says none."""
    if said is None:
        return _NOTHING
    corners = np.array([*product(*_finite([said["low"], said["high"]], (2, 3)).T)])
    places = np.array([*product((0, 1), repeat=3)])
    pairs = [(a, b) for a in range(8) for b in range(a) if np.abs(places[a] - places[b]).sum() == 1]
    return np.asarray(corners[np.array(pairs)])


def _crosses(said: Any) -> Array:
    """Return a line ``(n * 3, 2, 3)`` m along each axis through each point."""
    if not said:
        return _NOTHING
    points = _finite(said, (len(said), 3))
    arms = CROSS_M * np.stack([-np.eye(3), np.eye(3)], axis=1)
    return np.asarray((points[:, None, None] + arms).reshape(-1, 2, 3))


def _finite(given: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return numbers; ValueError unless they are of a shape, and finite."""
    found = np.array(given, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{found.shape} is not {shape}, or not finite")
    return found


def _lines(name: str, lines: Array, color: Rgb) -> Lines:
    return plain_lines(name, lines, (*color, OPACITY), WIDTH)

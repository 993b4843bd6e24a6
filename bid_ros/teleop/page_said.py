"""What the page of a driver says, several times a second, read and checked."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.teleop.base import MARKS

LONGEST_NOTE: Final = 500  # characters
LONGEST_NAME: Final = 100  # characters, of a camera
COUNTS: Final = {1: "one number", 3: "three numbers", 4: "four numbers", 6: "six numbers"}
FARTHEST: Final = 10.0  # m or rad, that a pad may be dragged


@dataclass(frozen=True, eq=False)
class PageSaid:
    """One message of the page. What is pressed is counted, so that a press counts once, however often it is sent.

    Attributes:
        live: a pad or a key is held.
        twist: ``(6,)`` shares of the largest speeds, in the axes of ``view``.
        view: camera as whose picture shows it the person steers; empty: by the axes of the steering.
        place: ``(4,)`` how far the pads were dragged: ahead, left, up in m, and a turn in rad; None: they are pushed.
        lean: ``(3,)`` degrees of the phone; None: no sensor tells.
        holds: number of the hold.
        gripper: share of the opening that the slider is dragged to; None: it is not dragged.
        toggles, marks, notes: how often the gripper's button, a mark and the note's button were pressed.
        mark, note: of the last press.
        echo: number of the newest news that the page had; 0: none yet.
    """

    live: bool
    twist: Array
    view: str
    place: Array | None
    lean: Array | None
    holds: int
    gripper: float | None
    toggles: int
    marks: int
    mark: str
    notes: int
    note: str
    echo: int


def read_said(text: str) -> PageSaid:
    """Return a message, checked. Raises ValueError, KeyError, TypeError, OverflowError or RecursionError."""
    said = json.loads(text)
    twist, gripper = _numbers(said, "twist", 6, 1.0), said.get("gripper")
    if said["mark"] not in ("", *MARKS):
        raise ValueError(f"mark is not one of {', '.join(MARKS)}")
    return PageSaid(
        live=said["live"] is True,
        twist=twist,
        view=str(said.get("view", ""))[:LONGEST_NAME],
        place=None if said.get("place") is None else _numbers(said, "place", 4, FARTHEST),
        lean=None if said.get("lean") is None else _numbers(said, "lean", 3, 360.0),
        holds=int(said.get("holds", 0)),
        gripper=None if gripper is None else float(_numbers({"gripper": [gripper]}, "gripper", 1, 1.0)[0]),
        toggles=int(said["toggles"]),
        marks=int(said["marks"]),
        mark=said["mark"],
        notes=int(said.get("notes", 0)),
        note=str(said.get("note", ""))[:LONGEST_NOTE],
        echo=int(said.get("echo", 0)),
    )


def _numbers(said: Mapping[str, Any], name: str, count: int, most: float) -> Array:
    """Return a field of ``count`` numbers, each ``most`` at most. Raises ValueError, KeyError or TypeError."""
    values = np.array([float(value) for value in said[name]])
    if values.shape != (count,) or not all(math.isfinite(value) and abs(value) <= most for value in values):
        raise ValueError(f"{name} has not {COUNTS[count]} from {-most:g} to {most:g}")
    return values

"""The things of Transport: what of them matters and where it is, and what two people say who hand one over.

The payload is a hammer; its place is the middle of its handle, and its z axis points along the handle to the head. The
lid's place is that of its handle, which is long along the lid's y axis. The places of bins are those of their bases.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, reachable
from bid_ros.bench.robomimic.scripted_operator import Array, ScriptedOperator

PAYLOAD, LID, TRASH = "payload", "lid", "trash"
TARGET_BIN, TRASH_BIN = slice(21, 24), slice(24, 27)  # places, m, among what is observed of the objects
DELIVERED, CLEARED = 27, 28  # whether the payload lies in its bin; whether the trash lies in its
RIM: Final = 0.95  # m, of the bins
FLOOR: Final = 0.81  # m, inside them
INSIDE: Final = 0.14  # m from the middle of a bin to its walls
HALF_HANDLE: Final = 0.1  # m
FREE: Final = 1.6  # pace where nothing is near
OVER_RIM: Final = 0.2  # m over what lies in a bin, where open fingers clear the rim


@dataclass
class Talk:
    """What two people say to each other.

    Attributes:
        cleared: the second has an empty hand and an empty bin.
        offered: the first holds the payload where the second is to take it.
        taken: the second holds it.
        left: the first has let it go, and is away from it.
    """

    cleared: bool = False
    offered: bool = False
    taken: bool = False
    left: bool = False


def done(operator: ScriptedOperator, what: int) -> bool:
    """Return whether the payload is DELIVERED, or the target bin CLEARED."""
    return bool(operator.state.shown["object"][what] > 0.5)


def bin_place(operator: ScriptedOperator, which: slice) -> Array:
    """Return where the middle of a bin's base is, ``(3,)`` m."""
    return np.asarray(operator.state.shown["object"][which])


def ahead(operator: ScriptedOperator) -> Array:
    """Return ``(3,)`` where the arm looks, of length 1."""
    return np.array([np.cos(operator.facing), np.sin(operator.facing), 0.0])


def handle_axis(operator: ScriptedOperator) -> Array:
    """Return the direction of the hammer's handle ``(3,)``, of length 1, pointing away from the operator."""
    axis = operator.object_pose(PAYLOAD)[1][:, 2]
    return np.asarray(-axis if axis @ ahead(operator) < 0 else axis)


def handle_point(operator: ScriptedOperator, along: float) -> Array:
    """Return the place ``(3,)`` on the hammer's handle that is so many m from its middle, away from the operator."""
    return np.asarray(operator.object_pose(PAYLOAD)[0] + along * handle_axis(operator))


def heading(axis: Array) -> float:
    """Return the turn about the vertical, rad, of an axis ``(3,)``."""
    return float(np.arctan2(axis[1], axis[0]))


def across(operator: ScriptedOperator, axis: Array) -> Array:
    """Return the turns of the tool, rad, at which its fingers close on something that is long along ``axis``."""
    turns = heading(axis) - operator.facing + np.pi * np.arange(-3, 4)
    return reachable(turns)


def near(operator: ScriptedOperator, place: Array) -> bool:
    """Return whether a place is with the fingers."""
    return bool(np.linalg.norm(place - operator.tool_pose[0]) < 0.04)


def gripped_at(operator: ScriptedOperator) -> float:
    """Return how far from the middle of the handle, away from the operator, the fingers are, m; within the handle."""
    way = operator.tool_pose[0] - operator.object_pose(PAYLOAD)[0]
    return float(np.clip(way @ handle_axis(operator), -HALF_HANDLE, HALF_HANDLE))


def held(operator: ScriptedOperator) -> bool:
    """Return whether the hammer's handle is with the fingers."""
    return near(operator, handle_point(operator, gripped_at(operator)))


def rise(operator: ScriptedOperator, height: float) -> Array:
    """Return the place of the set-point, at another height, m; never lower than it is."""
    return np.asarray(operator.place + max(0.0, height - operator.place[2]) * UP)

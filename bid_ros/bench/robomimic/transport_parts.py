"""The things of Transport: what of them matters and where it is, and how an arm carries them.

The payload is a hammer; its place is the middle of its handle, and its z axis points along the handle to the head. The
lid's place is that of its handle, which is long along the lid's y axis. The places of bins are those of their bases.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.bench.robomimic.catalogue import POSE
from bid_ros.bench.robomimic.grasping import UP, reachable
from bid_ros.bench.robomimic.scripted_operator import DOWN, Array, Motion, ScriptedOperator
from bid_ros.core.rotation import matrix_from_vector

PAYLOAD, LID, TRASH = "payload", "lid", "trash"
TARGET_BIN, TRASH_BIN = slice(21, 24), slice(24, 27)  # places, m, among what is observed of the objects
DELIVERED, CLEARED = 27, 28  # whether the payload lies in its bin; whether the trash lies in its
TABLE, FLOOR, RIM = 0.80, 0.81, 0.95  # m, heights: of the tables; inside of the bins, and where these end
HALF_HANDLE, HEAD = 0.10, 0.13  # m from the middle of the hammer's handle to its end, and to the end of the head
GRIPS: Final = {True: (0.035, 0.050), False: (0.060, 0.075)}  # m from there to the fingers, if the head is farther
APART: Final = 0.105  # m between two hands on the handle
HAMMER_HELD: Final = 0.026  # m; closed fingers that are further apart hold the handle
LAST: Final = 0.088  # m from the middle of the handle, where fingers are just beside the head
FREE: Final = 1.6  # pace where nothing is near
# m/s; the hammer turns in fingers that are faster, as the arm does not keep its hand upright.
GENTLE, BRISK = 0.22, 0.30
OVER_RIM: Final = 0.2  # m over what lies in a bin, where open fingers clear the rim
WAYS: Final = {"straight": 0.55, "high": 0.15, "near": 0.15, "far": 0.15}
"""How things are carried, and by which share of the operators."""


def done(operator: ScriptedOperator, what: int) -> bool:
    """Return whether the payload is DELIVERED, or the target bin CLEARED."""
    return bool(operator.state.shown["object"][what] > 0.5)


def bin_place(operator: ScriptedOperator, which: slice) -> Array:
    """Return where the middle of a bin's base is, ``(3,)`` m."""
    return np.asarray(operator.state.shown["object"][which])


def ahead(operator: ScriptedOperator) -> Array:
    """Return ``(3,)`` where the arm looks, of length 1."""
    return np.array([np.cos(operator.facing), np.sin(operator.facing), 0.0])


def in_own_bin(operator: ScriptedOperator, name: str) -> bool:
    """Return whether an object lies in a bin on the operator's own table."""
    place = operator.object_pose(name)[0]
    return bool(TABLE < place[2] < RIM and place @ ahead(operator) < -0.29)


def head_is_far(operator: ScriptedOperator) -> bool:
    """Return whether the hammer's head points away from the operator."""
    return bool(operator.object_pose(PAYLOAD)[1][:, 2] @ ahead(operator) > 0)


def handle_axis(operator: ScriptedOperator) -> Array:
    """Return the direction of the hammer's handle ``(3,)``, of length 1, pointing away from the operator."""
    axis = operator.object_pose(PAYLOAD)[1][:, 2]
    return np.asarray(axis if head_is_far(operator) else -axis)


def handle_point(operator: ScriptedOperator, along: float) -> Array:
    """Return the place ``(3,)`` on the hammer's handle that is so many m from its middle, away from the operator."""
    return np.asarray(operator.object_pose(PAYLOAD)[0] + along * handle_axis(operator))


def handle_grip(operator: ScriptedOperator, along: float = 0.0) -> Array:
    """Return where the tool grips a hammer that lies in a bin, ``(3,)`` m, so that the fingers clear the bin."""
    return np.asarray(handle_point(operator, along) + 0.010 * UP)


def draw_grip(operator: ScriptedOperator) -> float:
    """Draw where the operator's half of the handle is gripped, for :func:`handle_point`.

    Nearer to the middle if the head is on the other half: it would pull the handle down in the fingers.
    """
    return -float(operator.random.uniform(*GRIPS[head_is_far(operator)]))


def gripped_at(operator: ScriptedOperator) -> float:
    """Return where on the handle the fingers are, for :func:`handle_point`."""
    way = operator.tool_pose[0] - operator.object_pose(PAYLOAD)[0]
    return float(np.clip(way @ handle_axis(operator), -HALF_HANDLE, HALF_HANDLE))


def beside_other(operator: ScriptedOperator, along: float) -> float:
    """Return where to grip the handle, for :func:`handle_point`, so that the hand does not meet the other one there."""
    other = operator.state.agent[POSE * (1 - operator.arm) :][:3] - operator.object_pose(PAYLOAD)[0]
    return max(-LAST, min(along, float(other @ handle_axis(operator)) - APART))


def lowest(operator: ScriptedOperator) -> float:
    """Return how high the lowest end of the hammer is, m."""
    place, turn = operator.object_pose(PAYLOAD)
    return float(place[2] + min(-HALF_HANDLE * turn[2, 2], HEAD * turn[2, 2]) - 0.015)


def near(operator: ScriptedOperator, place: Array) -> bool:
    """Return whether a place is with the fingers."""
    return bool(np.linalg.norm(place - operator.tool_pose[0]) < 0.03)


def held(operator: ScriptedOperator) -> bool:
    """Return whether the hammer's handle is with the fingers."""
    return near(operator, handle_point(operator, gripped_at(operator)))


def heading(axis: Array) -> float:
    """Return the turn about the vertical, rad, of an axis ``(3,)``."""
    return float(np.arctan2(axis[1], axis[0]))


def across(operator: ScriptedOperator, axis: Array) -> Array:
    """Return the turns of the tool, rad, at which its fingers close on something that is long along ``axis``."""
    return reachable(heading(axis) - operator.facing + np.pi * np.arange(-3, 4))


def handle_turns(operator: ScriptedOperator) -> Array:
    """Return the turns of the tool, rad, at which its fingers close on the hammer's handle."""
    return across(operator, handle_axis(operator))


def leaning(angle: float) -> Array:
    """Return the rotation ``(3, 3)`` of a tool whose fingers point down and, by ``angle``, rad, forward."""
    return np.asarray(DOWN @ matrix_from_vector(np.array([-angle, 0.0, 0.0])))


def slower(operator: ScriptedOperator, most: float) -> float:
    """Return the pace of an operator who carries something, and moves at ``most`` m/s at most."""
    return min(1.3, most / operator.skill.speed)


def rise(operator: ScriptedOperator, height: float, pace: float = FREE) -> Motion:
    """Raise the tool to a height, m, unless it is higher."""
    place = operator.place
    yield from operator.move(np.append(place[:2], max(place[2], height)), pace=pace)


def carry(
    operator: ScriptedOperator, goal: ArrayLike, yaw: float, lean: ArrayLike | None = None, pace: float = FREE
) -> Motion:
    """Bring the tool somewhere on one of several ways, for :meth:`ScriptedOperator.move`."""
    random, way = operator.random, str(operator.random.choice(list(WAYS), p=list(WAYS.values())))
    if way != "straight":
        aside = random.uniform(0.04, 0.08) * (UP if way == "high" else ahead(operator) * (1 if way == "far" else -1))
        share = random.uniform(0.3, 0.7)
        between = operator.place + share * (np.asarray(goal) - operator.place) + aside
        yield from operator.move(between, operator.yaw + share * (yaw - operator.yaw), pace)
    yield from operator.move(goal, yaw, pace, lean)

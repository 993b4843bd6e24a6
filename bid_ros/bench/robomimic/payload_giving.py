"""The first arm of Transport: it takes the lid off the bin and the hammer out of it, and hands the hammer over."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp
from bid_ros.bench.robomimic.scripted_operator import OPEN, Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.transport_parts import (
    FREE,
    LID,
    OVER_RIM,
    PAYLOAD,
    RIM,
    Talk,
    across,
    ahead,
    gripped_at,
    handle_axis,
    handle_point,
    heading,
    held,
    rise,
)
from bid_ros.bench.robomimic.two_arms import until


@dataclass(frozen=True)
class Offer:
    """Where the hammer is handed over.

    Attributes:
        place: ``(3,)`` m, of the middle of its handle.
        turn: rad, of the handle about the vertical, from where the first arm looks.
    """

    place: Array
    turn: float


def give(operator: ScriptedOperator, talk: Talk, offer: Offer) -> Motion:
    """Take the lid off, take the hammer out, hold it where it is to be taken, let it go and draw the hand back."""
    yield from _uncover(operator)
    while not talk.taken and _lies(operator):
        yield from _take_out(operator)
        if held(operator):
            yield from _offer(operator, talk, offer)


def _uncover(operator: ScriptedOperator) -> Motion:
    """Lay the lid beside the bin."""
    random = operator.random
    how = Grasp(
        lambda one: one.object_pose(LID)[0], lambda one: across(one, one.object_pose(LID)[1][:, 1]), 0.012, long=True
    )
    yield from grasp(operator, how)
    lying = operator.object_pose(LID)[0]
    goal = np.array([lying[0] - 0.40, lying[1], 0.826]) + random.uniform(-0.02, 0.02, 3) * [1.0, 1.0, 0.0]
    over = rise(operator, random.uniform(1.02, 1.10))
    yield from operator.move(over, pace=FREE)
    turn = operator.yaw + random.uniform(-0.25, 0.25)
    yield from operator.move(np.append(goal[:2], over[2]), turn, FREE)
    yield from operator.hesitate()
    yield from operator.move(goal + random.uniform(0.0, 0.02) * UP)
    yield from operator.wait(0.2)
    yield from operator.grip(OPEN, random.uniform(0.3, 0.5))
    yield from operator.move(rise(operator, random.uniform(0.97, 1.05)), pace=FREE)


def _take_out(operator: ScriptedOperator) -> Motion:
    """Grasp the hammer at the end of its handle that is nearer, and lift it out of the bin."""
    random = operator.random
    along = -random.uniform(0.055, 0.075)
    yield from operator.move(np.append(handle_point(operator, along)[:2], random.uniform(1.03, 1.08)), pace=FREE)
    how = Grasp(
        partial(_grip, along=along),
        lambda one: across(one, handle_axis(one)),
        0.022,
        ("over", "left", "right"),
        OVER_RIM,
        long=True,
        near=0.015,
    )
    yield from grasp(operator, how)
    yield from operator.move(rise(operator, random.uniform(1.02, 1.10)), pace=FREE)
    yield from operator.hesitate()


def _offer(operator: ScriptedOperator, talk: Talk, offer: Offer) -> Motion:
    """Bring the hammer to where it is handed over, hold it until it is taken, and let it go."""
    random = operator.random
    axis = operator.facing + offer.turn
    along = gripped_at(operator)
    goal = offer.place + along * np.array([np.cos(axis), np.sin(axis), 0.0])
    yield from operator.move(goal, operator.yaw + axis - heading(handle_axis(operator)), FREE)
    yield from operator.arrive(0.01)
    talk.offered = True
    yield from until(operator, lambda: talk.taken or not held(operator))
    talk.offered = False
    yield from operator.wait(operator.skill.notice)
    yield from operator.hesitate()
    yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
    yield from operator.move(operator.place + random.uniform(0.08, 0.12) * UP)
    yield from operator.move(operator.place - random.uniform(0.15, 0.25) * ahead(operator), 0.0, FREE)
    talk.left = talk.taken


def _lies(operator: ScriptedOperator) -> bool:
    """Return whether the hammer lies in the first bin."""
    place = operator.object_pose(PAYLOAD)[0]
    return bool(place[2] < RIM and place[2] > 0.8 and place[1] < -0.29)


def _grip(operator: ScriptedOperator, along: float) -> Array:
    return handle_point(operator, along) + 0.004 * UP

"""The first arm of Transport: it takes the lid off the bin and the hammer out of it, and hands the hammer over."""

from functools import partial
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import Grasp, grasp
from bid_ros.bench.robomimic.handing_over import Agreement, Talk
from bid_ros.bench.robomimic.scripted_operator import DOWN, OPEN, Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.transport_parts import (
    APART,
    FREE,
    GENTLE,
    HAMMER_HELD,
    LID,
    OVER_RIM,
    PAYLOAD,
    TABLE,
    across,
    ahead,
    carry,
    draw_grip,
    handle_axis,
    handle_grip,
    handle_point,
    handle_turns,
    heading,
    held,
    in_own_bin,
    leaning,
    rise,
    slower,
)
from bid_ros.bench.robomimic.two_arms import until

SWING: Final = 0.02  # m
BESIDE: Final = np.array([0.4, 0.0])  # m, from where the lid is to lie to the bin


def give(operator: ScriptedOperator, talk: Talk, agreed: Agreement) -> Motion:
    """Take the lid off, take the hammer out, hold it where it is to be taken, let it go and draw the hand back.

    A lid that was lost over the bin is grasped again, and so is a hammer that fell back into it.
    """
    while _covered(operator):
        yield from _uncover(operator)
    talk.uncovered = True
    yield from until(operator, lambda: agreed.order != "bin first" or talk.cleared)
    while not talk.taken and in_own_bin(operator, PAYLOAD):
        yield from _take_out(operator)
        if held(operator):
            yield from _offer(operator, talk, agreed)
        else:
            yield from operator.grip(OPEN, 0.3)
    talk.lost = not talk.taken


def _uncover(operator: ScriptedOperator) -> Motion:
    """Lay the lid on the table beside the bin, as it was or by a quarter turn."""
    random = operator.random
    how = Grasp(_lid_grip, lambda one: across(one, one.object_pose(LID)[1][:, 1]), held=0.012, long=True)
    yield from grasp(operator, how)
    goal = operator.object_pose(LID)[0][:2] - BESIDE + random.uniform(-0.02, 0.02, 2)
    quarter = random.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1])
    yield from rise(operator, random.uniform(1.02, 1.10))
    turn = operator.yaw + quarter * np.pi / 2 + random.uniform(-0.25, 0.25)
    yield from carry(operator, np.append(goal, operator.place[2]), turn)
    yield from operator.hesitate()
    yield from operator.move(np.append(goal, TABLE + 0.026 + random.uniform(0.0, 0.02)))
    yield from operator.arrive(0.03)
    yield from operator.grip(OPEN, random.uniform(0.3, 0.5))
    yield from rise(operator, random.uniform(0.97, 1.05))


def _take_out(operator: ScriptedOperator) -> Motion:
    """Grasp the nearer half of the hammer's handle, and lift it out of the bin."""
    random, along = operator.random, draw_grip(operator)
    yield from operator.move(np.append(handle_point(operator, along)[:2], random.uniform(1.03, 1.08)), pace=FREE)
    paths = ("over", "left", "right")
    how = Grasp(partial(handle_grip, along=along), handle_turns, HAMMER_HELD, paths, OVER_RIM, long=True, careful=0.01)
    yield from grasp(operator, how)
    # The arm swings back as it rises, and the hammer's nearer end would catch on the wall of the bin.
    goal = operator.place + SWING * ahead(operator)
    goal[2] = random.uniform(1.02, 1.10)
    yield from operator.move(goal, pace=0.8 * slower(operator, GENTLE))
    yield from operator.hesitate()


def _offer(operator: ScriptedOperator, talk: Talk, agreed: Agreement) -> Motion:
    """Bring the hammer to where it is handed over, hold it until it is taken, and let it go."""
    random, axis = operator.random, operator.facing + agreed.turn
    goal = agreed.place - APART / 2 * np.array([np.cos(axis), np.sin(axis), 0.0])
    yaw = operator.yaw + axis - heading(handle_axis(operator))
    yield from carry(operator, goal, yaw, leaning(agreed.leans[0]), slower(operator, GENTLE))
    yield from operator.arrive(0.01)
    talk.offered = True
    yield from until(operator, lambda: talk.taken or not held(operator))
    talk.offered = False
    yield from operator.wait(operator.skill.notice)
    yield from operator.hesitate()
    yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
    yield from operator.move(operator.place - random.uniform(0.08, 0.12) * operator.turn[:, 2])
    talk.left = talk.taken
    yield from operator.move(operator.place - random.uniform(0.15, 0.25) * ahead(operator), 0.0, FREE, DOWN)


def _covered(operator: ScriptedOperator) -> bool:
    """Return whether the lid is still on the bin."""
    way = operator.object_pose(LID)[0] - operator.object_pose(PAYLOAD)[0]
    return bool(np.linalg.norm(way[:2]) < 0.2 and way[2] > 0.05)


def _lid_grip(operator: ScriptedOperator) -> Array:
    return operator.object_pose(LID)[0]

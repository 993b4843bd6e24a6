"""The second arm of Transport: it clears the target bin of the cube, and puts the hammer into it that it is given."""

from functools import partial

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.scripted_operator import OPEN, Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.transport_parts import (
    CLEARED,
    FREE,
    OVER_RIM,
    RIM,
    TARGET_BIN,
    TRASH,
    TRASH_BIN,
    Talk,
    across,
    bin_place,
    done,
    gripped_at,
    handle_axis,
    handle_point,
    heading,
    near,
    rise,
)
from bid_ros.bench.robomimic.two_arms import until


def take(operator: ScriptedOperator, talk: Talk) -> Motion:
    """Bring the cube into the trash bin, take the hammer, and put it into the target bin."""
    random = operator.random
    yield from _clear(operator)
    talk.cleared = True
    yield from operator.move(
        [random.uniform(-0.1, 0.1), random.uniform(0.2, 0.26), random.uniform(1.08, 1.16)], 0.0, FREE
    )
    yield from until(operator, lambda: talk.offered)
    yield from operator.hesitate()
    along = -random.uniform(0.055, 0.075)
    how = Grasp(partial(_grip, along=along), lambda one: across(one, handle_axis(one)), 0.022, long=True, near=0.01)
    yield from grasp(operator, how)
    talk.taken = True
    yield from until(operator, lambda: talk.left)
    yield from _deliver(operator)


def _clear(operator: ScriptedOperator) -> Motion:
    """Take the cube out of the target bin, and drop it into the other."""
    random = operator.random
    while not done(operator, CLEARED) and _lies(operator):
        how = Grasp(_cube, _yaws, 0.030, ("over", "left", "right"), OVER_RIM)
        yield from grasp(operator, how)
        yield from operator.move(rise(operator, random.uniform(1.00, 1.08)), pace=FREE)
        if near(operator, _cube(operator)):
            goal = bin_place(operator, TRASH_BIN)[:2] + random.uniform(-0.06, 0.06, 2)
            yield from operator.move(np.append(goal, operator.place[2]), operator.yaw + random.uniform(-0.4, 0.4), FREE)
            yield from operator.arrive(0.04)
            yield from operator.hesitate()
            yield from operator.move(np.append(goal, random.uniform(0.9, 1.0)), pace=FREE)
        yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
        yield from operator.move(rise(operator, random.uniform(1.03, 1.08)), pace=FREE)


def _deliver(operator: ScriptedOperator) -> Motion:
    """Bring the hammer over the target bin, lower it, and let it go."""
    random = operator.random
    turn = operator.facing + random.uniform(-0.5, 0.5)
    along = gripped_at(operator)
    goal = bin_place(operator, TARGET_BIN)[:2] + random.uniform(-0.015, 0.015, 2)
    goal += along * np.array([np.cos(turn), np.sin(turn)])
    over = np.append(goal, max(operator.place[2], random.uniform(1.03, 1.08)))
    yield from operator.move(over, operator.yaw + turn - heading(handle_axis(operator)), FREE)
    yield from operator.arrive(0.02)
    yield from operator.hesitate()
    yield from operator.move(np.append(goal, random.uniform(0.84, 0.95)))
    yield from operator.hesitate()
    yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
    yield from operator.move(rise(operator, RIM + 0.1), pace=FREE)
    yield from operator.wait(0.3)


def _lies(operator: ScriptedOperator) -> bool:
    """Return whether the cube lies in a bin of this side."""
    place = operator.object_pose(TRASH)[0]
    return bool(0.8 < place[2] < RIM and place[1] > 0.29)


def _cube(operator: ScriptedOperator) -> Array:
    return operator.object_pose(TRASH)[0]


def _yaws(operator: ScriptedOperator) -> Array:
    side = heading(operator.object_pose(TRASH)[1][:, 0])
    return reachable(side - operator.facing + np.pi / 2 * np.arange(-6, 7))


def _grip(operator: ScriptedOperator, along: float) -> Array:
    return handle_point(operator, along) - 0.005 * UP

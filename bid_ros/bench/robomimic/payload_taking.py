"""The second arm of Transport: it clears the target bin of the cube, and puts the hammer into it that it is given."""

from functools import partial
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.handing_over import Agreement, Talk
from bid_ros.bench.robomimic.scripted_operator import DOWN, OPEN, Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.transport_parts import (
    BRISK,
    CLEARED,
    DELIVERED,
    FLOOR,
    FREE,
    GENTLE,
    HAMMER_HELD,
    OVER_RIM,
    PAYLOAD,
    RIM,
    TARGET_BIN,
    TRASH,
    TRASH_BIN,
    beside_other,
    bin_place,
    carry,
    done,
    draw_grip,
    gripped_at,
    handle_axis,
    handle_grip,
    handle_point,
    handle_turns,
    head_is_far,
    heading,
    held,
    in_own_bin,
    leaning,
    lowest,
    near,
    rise,
    slower,
)
from bid_ros.bench.robomimic.two_arms import until

FROM_ABOVE: Final = ("over", "left", "right")
OVER_BIN: Final = {True: (1.13, 1.17), False: (1.05, 1.10)}  # m, of a hand with a hammer that hangs down, and of others


def take(operator: ScriptedOperator, talk: Talk, agreed: Agreement) -> Motion:
    """Bring the cube into the trash bin, take the hammer, and put it into the target bin."""
    random = operator.random
    yield from until(operator, lambda: agreed.order != "lid first" or talk.uncovered)
    yield from _clear(operator)
    talk.cleared = True
    above = agreed.place[2] + random.uniform(0.11, 0.17)  # where the hammer comes past below
    ready = [random.uniform(-0.1, 0.1), random.uniform(0.20, 0.26), above]
    yield from operator.move(ready, 0.0, FREE, leaning(agreed.leans[1]))
    yield from until(operator, lambda: talk.offered or talk.lost)
    if talk.lost:
        return
    yield from operator.hesitate()
    how = Grasp(
        partial(_offered_grip, along=draw_grip(operator)),
        handle_turns,
        HAMMER_HELD,
        FROM_ABOVE,
        long=True,
        careful=0.01,
    )
    yield from grasp(operator, how)
    talk.taken = held(operator)
    if talk.taken:
        yield from until(operator, lambda: talk.left)
        yield from _deliver(operator)


def _clear(operator: ScriptedOperator) -> Motion:
    """Take the cube out of the target bin, and drop it into the other; one that was lost in a bin is taken again."""
    random = operator.random
    while not done(operator, CLEARED) and in_own_bin(operator, TRASH):
        yield from grasp(operator, Grasp(_cube, _sides, 0.030, FROM_ABOVE, OVER_RIM, careful=0.015))
        yield from rise(operator, random.uniform(1.00, 1.08), slower(operator, BRISK))
        if near(operator, _cube(operator)):
            goal = bin_place(operator, TRASH_BIN)[:2] + random.uniform(-0.06, 0.06, 2)
            yaw = operator.yaw + random.uniform(-0.4, 0.4)
            yield from carry(operator, np.append(goal, operator.place[2]), yaw, pace=slower(operator, BRISK))
            yield from operator.arrive(0.04)
            yield from operator.hesitate()
            yield from operator.move(np.append(goal, random.uniform(0.90, 1.00)), pace=FREE)
        yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
        yield from rise(operator, random.uniform(1.03, 1.08))


def _deliver(operator: ScriptedOperator) -> Motion:
    """Bring the hammer over the target bin, lower it, and let it go; take it again if it leans on the rim."""
    random = operator.random
    while held(operator):
        axis = operator.facing + random.uniform(-0.5, 0.5)
        goal = bin_place(operator, TARGET_BIN)[:2] + random.uniform(-0.015, 0.015, 2)
        goal += gripped_at(operator) * np.array([np.cos(axis), np.sin(axis)])
        yaw = operator.yaw + axis - heading(handle_axis(operator))
        hangs = head_is_far(operator)  # then it turns in the fingers on the way, and hangs down in the end
        pace = slower(operator, GENTLE if hangs else BRISK)
        yield from rise(operator, random.uniform(*OVER_BIN[hangs]), pace)
        yield from carry(operator, np.append(goal, operator.place[2]), yaw, DOWN, pace)
        yield from operator.arrive(0.02)
        yield from operator.hesitate()
        yield from operator.move(operator.place - (lowest(operator) - FLOOR - random.uniform(0.005, 0.07)) * UP)
        yield from operator.arrive(0.03)
        yield from operator.hesitate()
        yield from operator.grip(OPEN, random.uniform(0.4, 0.6))
        yield from rise(operator, RIM + 0.1)
        yield from operator.wait(0.3)
        if not done(operator, DELIVERED) and in_own_bin(operator, PAYLOAD):
            how = Grasp(handle_grip, handle_turns, HAMMER_HELD, FROM_ABOVE, OVER_RIM, long=True, careful=0.015)
            yield from grasp(operator, how)


def _cube(operator: ScriptedOperator) -> Array:
    return operator.object_pose(TRASH)[0]


def _sides(operator: ScriptedOperator) -> Array:
    side = heading(operator.object_pose(TRASH)[1][:, 0])
    return reachable(side - operator.facing + np.pi / 2 * np.arange(-6, 7))


def _offered_grip(operator: ScriptedOperator, along: float) -> Array:
    return handle_point(operator, beside_other(operator, along)) - 0.005 * UP  # deep: nothing is below

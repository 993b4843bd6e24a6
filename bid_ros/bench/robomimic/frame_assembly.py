"""A scripted operator puts the frame of Tool Hang into its stand."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp
from bid_ros.bench.robomimic.hang_parts import (
    ASSEMBLED,
    DEPTH,
    FLAT,
    FRAME,
    FRAME_GRIP,
    MOUNT,
    STAND,
    TABLE,
    TIP,
    Aim,
    aim,
    done,
    follow,
    held,
    point,
)
from bid_ros.bench.robomimic.scripted_operator import (
    CLOSED,
    DOWN,
    OPEN,
    Array,
    Motion,
    ScriptedOperator,
    about_vertical,
)
from bid_ros.core.rotation import matrix_from_vector

LEANS: Final = (15.0, 40.0)  # degrees by which the hand leans back over the bar
CLEAR: Final = 0.004  # m over the middle of the grip, so that leaning fingers clear the table
FREE: Final = 1.6  # pace where nothing is near
TRIES: Final = 4


def assemble(operator: ScriptedOperator, hook: float) -> Motion:
    """Grasp the frame, turn it upright, lower it into the stand's hole, and let go.

    A frame that was lost is grasped again if it lies flat on the table.

    Args:
        operator: whose fingers are empty.
        hook: where the bar is to point, rad about the vertical.
    """
    while not done(operator, ASSEMBLED) and _lies(operator):
        random = operator.random
        lean = DOWN @ matrix_from_vector(np.array([-np.deg2rad(random.uniform(*LEANS)), 0.0, 0.0]))
        between = (operator.place + point(operator, FRAME, FRAME_GRIP)) / 2
        yield from operator.move(np.append(between[:2], random.uniform(0.98, 1.05)), _yaws(operator)[0], FREE, lean)
        yield from grasp(operator, Grasp(_grip, _yaws, held=0.020))
        yield from operator.move(operator.place + random.uniform(0.16, 0.24) * UP, pace=FREE)
        yield from operator.hesitate()
        if held(operator, FRAME, FRAME_GRIP):
            turn = upright(hook)
            yield from follow(operator, _over(operator, turn, random.uniform(0.05, 0.08)), FREE)
            yield from operator.hesitate()
            yield from _insert(operator, turn)
        yield from _let_go(operator)


def upright(hook: float) -> Array:
    """Return the rotation ``(3, 3)`` of a frame that stands, with its bar pointing to ``hook``, rad."""
    return about_vertical(hook + np.pi)


def _insert(operator: ScriptedOperator, turn: Array) -> Motion:
    """Lower the frame into the hole. Where it rests on the hole's edge, raise it and try again."""
    for _ in range(TRIES):
        yield from _align(operator, turn)
        if not held(operator, FRAME, FRAME_GRIP):
            return
        yield from operator.hesitate()
        yield from _lower(operator, turn, operator.random.uniform(0.12, 0.145))
        if _missing(operator)[2] > 0.10:
            return
        yield from follow(operator, _over(operator, turn, 0.03, share=1.0), 0.8)


def _align(operator: ScriptedOperator, turn: Array) -> Motion:
    """Hold the frame upright over the hole until it is there and at rest."""
    yield from operator.wait(0.3)
    for _ in range(TRIES):
        yield from follow(operator, _over(operator, turn, 0.02, share=0.7))
        yield from operator.wait(0.35)
        before = _missing(operator)
        yield from operator.wait(0.1)
        now = _missing(operator)
        if max(np.linalg.norm(now[:2]), np.linalg.norm(now - before)) < 0.0015:
            return


def _lower(operator: ScriptedOperator, turn: Array, depth: float) -> Motion:
    """Go down in steps, and correct place and turn in each; stop where the frame rests on something."""
    for height in np.append(np.arange(0.0, -depth, -0.025), -depth):
        down = _over(operator, turn, float(height), share=1.0).goal[2]
        half = _over(operator, turn, float(height), share=0.5)
        yield from operator.move(np.append(half.goal[:2], down), half.yaw, 0.6 if height > -0.04 else 1.0, half.lean)
        yield from operator.wait(0.15)
        if -_missing(operator)[2] - height > 0.012:
            return


def _let_go(operator: ScriptedOperator) -> Motion:
    """Open the fingers and draw the hand back; push a frame that did not go down first."""
    random = operator.random
    yield from operator.hesitate()
    yield from operator.grip(OPEN, random.uniform(0.4, 0.7))
    for _ in range(2):
        if done(operator, ASSEMBLED) or not 0.02 < _missing(operator)[2] < DEPTH:
            break
        yield from operator.grip(CLOSED, 0.5)
        yield from operator.move(operator.place - 0.03 * UP, pace=0.6)
        yield from operator.grip(OPEN, 0.5)
    yield from operator.move(operator.place - random.uniform(0.05, 0.065) * operator.turn[:, 2])


def _over(operator: ScriptedOperator, turn: Array, height: float, share: float | None = None) -> Aim:
    """Return what brings the frame's tip over the hole."""
    place = point(operator, STAND, MOUNT) + height * UP - turn @ TIP
    return aim(operator, FRAME, place, turn, share)


def _missing(operator: ScriptedOperator) -> Array:
    """Return the way from the frame's tip to the upper end of the hole, m."""
    return point(operator, STAND, MOUNT) - point(operator, FRAME, TIP)


def _lies(operator: ScriptedOperator) -> bool:
    """Return whether the frame lies flat on the table."""
    place, turn = operator.object_pose(FRAME)
    return bool(abs(turn[2, 1]) > FLAT and place[2] < TABLE + 0.04)


def _grip(operator: ScriptedOperator) -> Array:
    return point(operator, FRAME, FRAME_GRIP) + CLEAR * UP


def _yaws(operator: ScriptedOperator) -> Array:
    """Return the turn of the hand at which it leans over the bar and the rod points away from it."""
    rod = -operator.object_pose(FRAME)[1][:, 2]
    return np.array([np.arctan2(rod[1], rod[0])])

"""A scripted operator hangs the tool of Tool Hang on the frame."""

from functools import partial
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.frame_assembly import FREE, TRIES
from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp
from bid_ros.bench.robomimic.hang_parts import (
    FLAT,
    FRAME,
    HUNG,
    POST,
    RING,
    TABLE,
    TOOL,
    Aim,
    aim,
    done,
    follow,
    held,
    nearest,
    point,
    tilted,
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

FARTHEST: Final = np.deg2rad(122.0)  # turn of the wrist
ABOVE_FRAME: Final = 1.09  # m, where open fingers clear the frame
FARTHEST_X: Final = 0.0  # m, to which the arm reaches at that height without being straight
LOWERED, LOW = 0.005, 0.012  # m under the post's upper end: the ring is round the post; it is at the bar
STUCK: Final = 0.035  # m from the post; a ring that is nearer did not fall
MIDDLE: Final = np.zeros(3)  # of the tool
GRIP: Final = 0.004  # m over the middle of the tool
THREADING: Final = np.deg2rad(20.0)  # by which the far end of the tool hangs as the ring goes over the post


def hang(operator: ScriptedOperator, skew: float, last: float) -> Motion:
    """Grasp the tool, put its first ring over the post, tilt the tool until the ring is on the bar, and let go.

    A tool that fell is grasped again if it lies flat on the table.

    Args:
        operator: whose fingers are empty.
        skew: rad, by which the tool is turned about the vertical from the bar's direction.
        last: rad, by which its far end hangs as the fingers let go.
    """
    random = operator.random
    yield from _rise(operator, random.uniform(0.0, 0.5))
    while not done(operator, HUNG) and _lies(operator):
        between = (operator.place + operator.object_pose(TOOL)[0]) / 2
        yield from operator.move(np.append(between[:2], ABOVE_FRAME), pace=FREE)
        how = Grasp(partial(_grip, random.uniform(-0.01, 0.015)), partial(_yaws, skew=skew), 0.026, ("over", "right"))
        yield from grasp(operator, how)
        turned = _heading(operator, FRAME) + np.pi + skew - _heading(operator, TOOL)
        yield from operator.move(operator.place + random.uniform(0.27, 0.31) * UP, pace=FREE)
        yield from operator.hesitate()
        if held(operator, TOOL, MIDDLE):
            yield from operator.move(operator.place, nearest(operator.yaw + turned, 0.0))
            yield from follow(operator, _ring_at(operator, skew, THREADING, -0.03, 0.07), FREE)
            yield from operator.hesitate()
            yield from _thread(operator, skew, last)
        yield from operator.grip(OPEN, random.uniform(0.5, 0.8))
        yield from _mend(operator, skew, last)
        yield from operator.move(operator.place - random.uniform(0.06, 0.10) * operator.turn[:, 2], pace=FREE)
        if not done(operator, HUNG):
            yield from _rise(operator, random.uniform(0.0, 0.5))


def _rise(operator: ScriptedOperator, yaw: float) -> Motion:
    """Hold the hand over the frame, pointing down."""
    place = np.array([min(operator.place[0], FARTHEST_X), operator.place[1], ABOVE_FRAME])
    yield from operator.move(place, yaw, FREE, DOWN)
    yield from operator.hesitate()


def _thread(operator: ScriptedOperator, skew: float, last: float) -> Motion:
    """Put the ring over the post, and tilt the tool. Where the ring rests on the post, raise it and try again."""
    for _ in range(TRIES):
        yield from _align(operator, skew)
        if not held(operator, TOOL, MIDDLE):
            return
        for height in (0.0, -0.008, -0.012):
            yield from follow(operator, _ring_at(operator, skew, THREADING, 0.0, height, 0.7), 0.8)
            yield from operator.wait(0.15)
        if _off(operator)[2] > LOWERED:
            break
    yield from operator.hesitate()
    for tilt in np.linspace(THREADING, last, 4)[1:]:
        yield from follow(operator, _on_bar(operator, skew, float(tilt)))
        yield from operator.wait(0.15)
    yield from operator.hesitate()


def _align(operator: ScriptedOperator, skew: float) -> Motion:
    """Hold the ring over the post until it is there."""
    yield from operator.wait(0.3)
    for _ in range(TRIES):
        yield from follow(operator, _ring_at(operator, skew, THREADING, 0.0, 0.02, 0.7))
        yield from operator.wait(0.35)
        if np.linalg.norm(_off(operator)[:2]) < 0.003:
            return


def _mend(operator: ScriptedOperator, skew: float, last: float) -> Motion:
    """Take a tool again that was let go and stuck on the post: tilt it further, or put its ring over the post again."""
    for _ in range(2):
        if done(operator, HUNG) or np.linalg.norm(_off(operator)) > STUCK:
            return
        yield from operator.grip(CLOSED, 0.5)
        if _off(operator)[2] > LOW:
            last += np.deg2rad(12.0)
            yield from follow(operator, _on_bar(operator, skew, last, deeper=0.004))
            yield from operator.wait(0.2)
        else:
            yield from _thread(operator, skew, last)
        yield from operator.grip(OPEN, operator.random.uniform(0.5, 0.8))


def _on_bar(operator: ScriptedOperator, skew: float, tilt: float, deeper: float = 0.0) -> Aim:
    """Return what brings the tilted ring from the post onto the bar."""
    sine = float(np.sin(tilt))
    return _ring_at(operator, skew, tilt, 0.0075 * sine, -0.010 - 0.012 * sine - deeper, 1.0)


def _ring_at(
    operator: ScriptedOperator, skew: float, tilt: float, inward: float, height: float, share: float | None = None
) -> Aim:
    """Return what brings the middle of the ring somewhere, m from the post's upper end: along the bar, and up."""
    at, frame = operator.object_pose(FRAME)
    turn = about_vertical(_heading(operator, FRAME) + np.pi + skew) @ tilted(tilt)
    place = at + frame @ POST + inward * frame[:, 0] + height * UP - turn @ RING
    return aim(operator, TOOL, place, turn, share)


def _off(operator: ScriptedOperator) -> Array:
    """Return the way from the ring's middle to the post's upper end, m."""
    return point(operator, FRAME, POST) - point(operator, TOOL, RING)


def _heading(operator: ScriptedOperator, name: str) -> float:
    """Return the turn about the vertical, rad, of an object's x axis."""
    axis = operator.object_pose(name)[1][:, 0]
    return float(np.arctan2(axis[1], axis[0]))


def _lies(operator: ScriptedOperator) -> bool:
    """Return whether the tool lies flat on the table."""
    place, turn = operator.object_pose(TOOL)
    return bool(abs(turn[2, 2]) > FLAT and place[2] < TABLE + 0.03)


def _grip(along: float, operator: ScriptedOperator) -> Array:
    place, turn = operator.object_pose(TOOL)
    return np.asarray(place + along * turn[:, 0] + GRIP * UP)


def _yaws(operator: ScriptedOperator, skew: float) -> Array:
    """Return the turns of the hand at which it closes on the tool, if possible only those from which it can hang it."""
    turned = nearest(_heading(operator, FRAME) + np.pi + skew - _heading(operator, TOOL), 0.0)
    yaws = _heading(operator, TOOL) + np.pi * np.arange(-2, 3)
    yaws = yaws[np.abs(yaws) < FARTHEST]
    both = yaws[np.abs(yaws + turned) < FARTHEST]
    return np.asarray(both if both.size else yaws)

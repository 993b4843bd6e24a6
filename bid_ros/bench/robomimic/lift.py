"""A scripted operator lifts the cube."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.operator import CLOSED, OPEN, SETTLE_S, Array, Motion, Operator
from bid_ros.core.rotation import matrix_from_quaternion

QUARTER: Final = np.pi / 2  # after which a cube looks as before
FARTHEST_YAW: Final = np.deg2rad(110.0)  # to which the wrist turns
PATHS: Final = ("over", "left", "right", "low")
HELD: Final = 0.030  # m; closed fingers that are further apart hold the cube, of 40 to 44 mm
ABOVE: Final = 0.07  # m over the cube where the descent begins
RISE: Final = 0.12  # m
CLOSE_S: Final = 0.5
UP: Final = np.array([0.0, 0.0, 1.0])


def lift(operator: Operator) -> Motion:
    """Grasp the cube, again if it was missed, and lift it."""
    yaw = _choose_yaw(operator)
    yield from _approach(operator, yaw)
    first = True
    while True:
        missed = operator.random.uniform() < operator.skill.miss * (1.0 if first else 0.4)
        yield from _grasp(operator, yaw, missed)
        if operator.opening > HELD:
            break
        first = False
        yield from operator.wait(operator.skill.notice)
        yield from operator.grip(OPEN, operator.random.uniform(0.0, 0.3))
        yield from operator.move(_over(operator, operator.random.uniform(0.04, 0.08)))
        yaw = _nearest_yaw(operator)  # the cube may have been turned
        yield from operator.hesitate()
    yield from operator.hesitate()
    yield from operator.move(operator.place + UP * operator.random.uniform(0.8, 1.2) * RISE)
    yield from operator.wait(0.5)


def _cube(operator: Operator) -> Array:
    return np.asarray(operator.state.shown["object"][:3])


def _yaws(operator: Operator) -> Array:
    """Return the turns of the tool, rad, at which its fingers close on two faces of the cube."""
    axis = matrix_from_quaternion(operator.state.shown["object"][3:7])[:, 0]
    yaws = np.arctan2(axis[1], axis[0]) + QUARTER * np.arange(-4, 5)
    return np.asarray(yaws[np.abs(yaws) < FARTHEST_YAW])


def _choose_yaw(operator: Operator) -> float:
    """Choose a pair of faces: people take the nearest more often, but not always."""
    yaws = _yaws(operator)
    weights = np.exp(-np.abs(yaws) / np.deg2rad(45.0))
    return float(operator.random.choice(yaws, p=weights / weights.sum()))


def _nearest_yaw(operator: Operator) -> float:
    yaws = _yaws(operator)
    return float(yaws[np.abs(yaws - operator.yaw).argmin()])


def _over(operator: Operator, height: float) -> Array:
    return np.asarray(_cube(operator) + height * UP)


def _approach(operator: Operator, yaw: float) -> Motion:
    """Come to the cube on one of several paths."""
    random, path = operator.random, operator.random.choice(PATHS)
    yield from operator.wait(random.uniform(0.0, operator.skill.longest_pause))
    aside = random.uniform(0.05, 0.11)
    if path in ("left", "right"):
        side = np.array([0.0, aside if path == "left" else -aside, 0.0])
        between = (operator.place + _over(operator, ABOVE)) / 2 + side
        yield from operator.move(between, yaw * random.uniform(0.2, 0.8))
    elif path == "low":
        yield from operator.move(_cube(operator) + np.array([-aside, 0.0, 0.05]), yaw)  # from the robot's side
    yield from operator.hesitate()
    yield from operator.move(_over(operator, ABOVE * random.uniform(0.7, 1.3)), yaw)
    yield from operator.hesitate()


def _grasp(operator: Operator, yaw: float, missed: bool) -> Motion:
    """Go down and close the fingers: on the cube, or where it is not."""
    random, skill = operator.random, operator.skill
    aim = np.append(random.normal(0.0, skill.aim, 2), random.normal(0.0, 0.003))
    pace = random.uniform(0.5, 0.9)
    if missed and random.uniform() < 0.5:
        aim[2] += random.uniform(0.035, 0.06)  # too early
    elif missed:
        # Beside it, across the way in which the fingers close: they pass it and find nothing.
        side = random.choice([-1.0, 1.0]) * random.uniform(0.036, 0.055)
        aim[:2] += side * np.array([np.cos(yaw), np.sin(yaw)])
    yield from operator.move(_over(operator, 0.0) + aim, yaw, pace)
    yield from operator.wait(SETTLE_S * random.uniform(0.2, 1.2))
    yield from operator.grip(CLOSED, CLOSE_S * random.uniform(0.8, 1.3))

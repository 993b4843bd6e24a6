"""How scripted operators grasp: on one of several paths, with a choice of turns, with misses and what mends them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.bench.robomimic.scripted_operator import (
    CLOSED,
    OPEN,
    SETTLE_S,
    Array,
    Motion,
    ScriptedOperator,
    about_vertical,
)

PATHS: Final = ("over", "left", "right", "low")
FARTHEST_YAW: Final = np.deg2rad(110.0)  # to which the wrist turns
ABOVE, HIGH = 0.07, 0.14  # m; from a greater height the tool goes down fast at first
GROUND: Final = 0.5  # m, under any table
CLOSE_S: Final = 0.5
UP: Final = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Grasp:
    """Where an object is grasped.

    Attributes:
        place: of the object as it is now, m.
        yaws: turns of the tool, rad from where the arm looks, at which its fingers close on the object as it is now.
        held: m; closed fingers that are further apart hold it.
        paths: of :data:`PATHS`, on which nothing is in the way.
        above: m over the object where the descent begins.
        long: whether the object is so long that fingers beside its middle close on it all the same.
        careful: m; the fingers close when the tool is that near to where it is to be, and are judged when they are at
            rest, as fingers that still close look as if they held something. None: neither is waited for.
    """

    place: Callable[[ScriptedOperator], Array]
    yaws: Callable[[ScriptedOperator], Array]
    held: float
    paths: tuple[str, ...] = PATHS
    above: float = ABOVE
    long: bool = False
    careful: float | None = None


def reachable(yaws: ArrayLike) -> Array:
    """Return those of turns, rad, that the wrist reaches."""
    turns: Array = np.asarray(yaws, dtype=np.float64)
    near: Array = turns[np.abs(turns) < FARTHEST_YAW]
    return near


def grasp(operator: ScriptedOperator, how: Grasp) -> Motion:
    """Grasp the object, and again as long as it was missed; leave one that fell to the ground."""
    yaws = how.yaws(operator)
    weights = np.exp(-np.abs(yaws) / np.deg2rad(45.0))  # people take the nearest more often, but not always
    yaw = float(operator.random.choice(yaws, p=weights / weights.sum()))
    yield from _approach(operator, how, yaw)
    if how.above > HIGH:
        yield from operator.move(how.place(operator) + ABOVE * UP, yaw, 1.6)
    first = True
    while True:
        missed = operator.random.uniform() < operator.skill.miss * (1.0 if first else 0.4)
        yield from _close(operator, how, yaw, missed)
        if operator.opening > how.held:
            break
        first = False
        yield from operator.wait(operator.skill.notice)
        if how.place(operator)[2] < GROUND:
            return
        yield from operator.grip(OPEN, operator.random.uniform(0.0, 0.3))
        yield from operator.move(how.place(operator) + operator.random.uniform(0.04, 0.08) * UP)
        yaws = how.yaws(operator)  # the object may have been turned
        yaw = float(yaws[np.abs(yaws - operator.yaw).argmin()])
        yield from operator.hesitate()
    yield from operator.hesitate()


def _approach(operator: ScriptedOperator, how: Grasp, yaw: float) -> Motion:
    """Come to the object on one of several paths."""
    random, path = operator.random, operator.random.choice(how.paths)
    yield from operator.wait(random.uniform(0.0, operator.skill.longest_pause))
    aside = random.uniform(0.05, 0.11)
    if path in ("left", "right"):
        side = about_vertical(operator.facing) @ [0.0, aside if path == "left" else -aside, 0.0]
        between = (operator.place + (how.place(operator) + how.above * UP)) / 2 + side
        yield from operator.move(between, yaw * random.uniform(0.2, 0.8))
    elif path == "low":
        back = about_vertical(operator.facing) @ [-aside, 0.0, 0.05]
        yield from operator.move(how.place(operator) + back, yaw)  # from the robot's side
    yield from operator.hesitate()
    yield from operator.move(how.place(operator) + how.above * random.uniform(0.7, 1.3) * UP, yaw)
    yield from operator.hesitate()


def _close(operator: ScriptedOperator, how: Grasp, yaw: float, missed: bool) -> Motion:
    """Go down and close the fingers: on the object, or where it is not."""
    random, skill = operator.random, operator.skill
    aim = np.append(random.normal(0.0, skill.aim, 2), random.normal(0.0, 0.003))
    pace = random.uniform(0.5, 0.9)
    if missed and (how.long or random.uniform() < 0.5):
        aim[2] += random.uniform(0.035, 0.06)  # too early
    elif missed:
        # Beside it, across the way in which the fingers close: they pass it and find nothing.
        side = random.choice([-1.0, 1.0]) * random.uniform(0.036, 0.055)
        turn = operator.facing + yaw
        aim[:2] += side * np.array([np.cos(turn), np.sin(turn)])
    yield from operator.move(how.place(operator) + aim, yaw, pace)
    yield from operator.wait(SETTLE_S * random.uniform(0.2, 1.2))
    if how.careful is not None:
        yield from operator.arrive(how.careful)
    yield from operator.grip(CLOSED, CLOSE_S * random.uniform(0.8, 1.3))
    if how.careful is not None:
        yield from operator.wait(0.2)

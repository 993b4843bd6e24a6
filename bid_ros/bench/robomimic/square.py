"""A scripted operator puts the square nut onto the square peg."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.scripted_operator import OPEN, Array, Motion, ScriptedOperator

PEG: Final = np.array([0.23, 0.10])  # m, x and y
TOP: Final = 0.95  # m, of the peg
HANDLE: Final = 0.054  # m from the middle of the nut, along its x axis
CLEAR: Final = 0.006  # m over the middle of the handle, so that the fingers clear the table
WAYS: Final = ("straight", "high", "left", "right")
QUARTER: Final = np.pi / 2


def square(operator: ScriptedOperator) -> Motion:
    """Grasp the nut at its handle, turn it to one of the ways in which it fits, and let it go over the peg.

    A nut that was lost on the way is grasped again, and so is one that lies on top of the peg.
    """
    while not _seated(operator):
        yield from grasp(operator, Grasp(_handle, _yaws, held=0.028))
        height = operator.random.uniform(1.00, 1.06)
        yield from _carry(operator, height)
        if _held(operator):
            yield from _insert(operator, height)
        yield from operator.hesitate()
        yield from operator.grip(OPEN, operator.random.uniform(0.4, 0.7))
        yield from operator.move(operator.place + 0.10 * UP)
    yield from operator.wait(0.5)


def _carry(operator: ScriptedOperator, height: float) -> Motion:
    """Lift the nut and bring it over the peg on one of several ways, in one of the turns in which it fits."""
    random, way = operator.random, operator.random.choice(WAYS)
    yield from operator.move(np.append(operator.place[:2], height + (0.06 if way == "high" else 0.0)))
    yield from operator.hesitate()
    if not _held(operator):
        return
    yaw = _fitting_yaw(operator)
    if way in ("left", "right"):
        side = random.uniform(0.04, 0.09) * np.array([0.0, 1.0 if way == "left" else -1.0])
        yield from operator.move(np.append((operator.place[:2] + PEG) / 2 + side, height), yaw)
    yield from operator.move(np.append(operator.place[:2], height), yaw)


def _insert(operator: ScriptedOperator, height: float) -> Motion:
    """Lower the nut over the peg. Where it rests on top of it, raise it and correct place and turn."""
    random = operator.random
    while _held(operator):
        for _ in range(2):  # the second time it corrects what was left
            yield from operator.move(np.append(operator.place[:2] + _missing(operator), height), _square_yaw(operator))
            yield from operator.wait(0.2)
            yield from operator.hesitate()
        aim = random.normal(0.0, operator.skill.aim / 2, 2)
        yield from operator.move(np.append(operator.place[:2] + aim, random.uniform(0.92, 0.94)), pace=0.6)
        yield from operator.wait(operator.skill.notice)
        if operator.object_place[2] < TOP - 0.01:
            return
        yield from operator.move(np.append(operator.place[:2], height), pace=0.8)


def _missing(operator: ScriptedOperator) -> Array:
    """Return the way from the nut's middle to the peg, m, x and y."""
    return np.asarray(PEG - operator.object_place[:2])


def _square_yaw(operator: ScriptedOperator) -> float:
    """Return the tool's turn at which the nut, as it is held now, is square to the peg."""
    turn = operator.object_heading
    return operator.yaw - float(turn - QUARTER * np.round(turn / QUARTER))


def _held(operator: ScriptedOperator) -> bool:
    """Return whether the nut is with the fingers."""
    return bool(np.linalg.norm(_handle(operator) - operator.state.agent[:3]) < 0.03)


def _seated(operator: ScriptedOperator) -> bool:
    return bool(np.abs(_missing(operator)).max() < 0.02 and operator.object_place[2] < TOP - 0.05)


def _handle(operator: ScriptedOperator) -> Array:
    turn = operator.object_heading
    return operator.object_place + HANDLE * np.array([np.cos(turn), np.sin(turn), 0.0]) + CLEAR * UP


def _yaws(operator: ScriptedOperator) -> Array:
    return reachable(operator.object_heading + np.pi * np.arange(-2, 3))


def _fitting_yaw(operator: ScriptedOperator) -> float:
    """Choose one of the turns of the tool at which the nut fits the peg, most often a near one."""
    yaws = reachable(operator.yaw - operator.object_heading + QUARTER * np.arange(-6, 7))
    weights = np.exp(-np.abs(yaws - operator.yaw) / np.deg2rad(40.0))
    return float(operator.random.choice(yaws, p=weights / weights.sum()))

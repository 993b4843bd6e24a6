"""A scripted operator puts the square nut onto the square peg."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.scripted_operator import OPEN, Array, Motion, ScriptedOperator

PEG: Final = np.array([0.23, 0.10])  # m, x and y
HANDLE: Final = 0.054  # m from the middle of the nut, along its x axis
CLEAR: Final = 0.006  # m over the middle of the handle, so that the fingers clear the table
WAYS: Final = ("straight", "high", "left", "right")


def square(operator: ScriptedOperator) -> Motion:
    """Grasp the nut at its handle, turn it to one of the ways in which it fits, and let it go over the peg."""
    random = operator.random
    yield from grasp(operator, Grasp(_handle, _yaws, held=0.020))
    way, height = random.choice(WAYS), random.uniform(1.00, 1.06)
    yield from operator.move(np.append(operator.place[:2], height + (0.06 if way == "high" else 0.0)))
    yield from operator.hesitate()
    yaw = _fitting_yaw(operator)
    if way in ("left", "right"):
        side = random.uniform(0.04, 0.09) * np.array([0.0, 1.0 if way == "left" else -1.0])
        yield from operator.move(np.append((operator.place[:2] + PEG) / 2 + side, height), yaw)
    yield from operator.move(np.append(operator.place[:2], height), yaw)
    for _ in range(2):  # the second time it corrects what was left
        yield from operator.move(np.append(operator.place[:2] + PEG - operator.object_place[:2], height))
        yield from operator.wait(0.2)
        yield from operator.hesitate()
    yield from operator.move(np.append(operator.place[:2], random.uniform(0.90, 0.94)), pace=0.6)
    yield from operator.grip(OPEN, random.uniform(0.4, 0.7))
    yield from operator.move(operator.place + 0.10 * UP)
    yield from operator.wait(0.5)


def _handle(operator: ScriptedOperator) -> Array:
    turn = operator.object_heading
    return operator.object_place + HANDLE * np.array([np.cos(turn), np.sin(turn), 0.0]) + CLEAR * UP


def _yaws(operator: ScriptedOperator) -> Array:
    return reachable(operator.object_heading + np.pi * np.arange(-2, 3))


def _fitting_yaw(operator: ScriptedOperator) -> float:
    """Choose one of the turns of the tool at which the nut fits the peg, most often a near one."""
    yaws = reachable(operator.yaw - operator.object_heading + np.pi / 2 * np.arange(-6, 7))
    weights = np.exp(-np.abs(yaws - operator.yaw) / np.deg2rad(40.0))
    return float(operator.random.choice(yaws, p=weights / weights.sum()))

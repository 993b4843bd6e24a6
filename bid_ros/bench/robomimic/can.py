"""A scripted operator brings the can from one bin into a compartment of the other."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.scripted_operator import OPEN, Array, Motion, ScriptedOperator

TARGET: Final = np.array([0.18, 0.39])  # m, of the compartment, x and y
SPREAD: Final = np.array([0.03, 0.05])  # m, to which side the can is put down
GRIP: Final = 0.015  # m over the middle of the can
WAYS: Final = ("straight", "high", "near", "far")


def can(operator: ScriptedOperator) -> Motion:
    """Grasp the can, carry it on one of several ways, and let it go."""
    random = operator.random
    yield from grasp(operator, Grasp(_can, _yaws, held=0.030))
    way, height = random.choice(WAYS), random.uniform(1.06, 1.10)
    yield from operator.move(np.append(operator.place[:2], height + (0.06 if way == "high" else 0.0)))
    yield from operator.hesitate()
    goal = TARGET + random.uniform(-1.0, 1.0, 2) * SPREAD
    if way in ("near", "far"):
        side = random.uniform(0.05, 0.10) * np.array([-1.0 if way == "near" else 1.0, 0.0])
        yield from operator.move(np.append((operator.place[:2] + goal) / 2 + side, height))
    yield from operator.move(np.append(goal, height), operator.yaw + random.uniform(-0.5, 0.5))
    yield from operator.hesitate()
    yield from operator.move(np.append(goal, random.uniform(0.90, 0.99)), pace=0.8)
    yield from operator.hesitate()
    yield from operator.grip(OPEN, random.uniform(0.3, 0.6))
    yield from operator.move(operator.place + 0.12 * UP)
    yield from operator.wait(0.5)


def _can(operator: ScriptedOperator) -> Array:
    return np.asarray(operator.object_place + GRIP * UP)


def _yaws(operator: ScriptedOperator) -> Array:
    return reachable(np.deg2rad([-90.0, -45.0, 0.0, 45.0, 90.0]))  # it is round

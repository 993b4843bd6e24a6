"""A scripted operator lifts the cube."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.grasping import UP, Grasp, grasp, reachable
from bid_ros.bench.robomimic.scripted_operator import Array, Motion, ScriptedOperator

RISE: Final = 0.12  # m


def lift(operator: ScriptedOperator) -> Motion:
    """Grasp the cube and lift it."""
    yield from grasp(operator, Grasp(_cube, _yaws, held=0.030))  # it measures 40 to 44 mm
    yield from operator.move(operator.place + UP * operator.random.uniform(0.8, 1.2) * RISE)
    yield from operator.wait(0.5)


def _cube(operator: ScriptedOperator) -> Array:
    return operator.object_place


def _yaws(operator: ScriptedOperator) -> Array:
    # Two of the four sides face the fingers after each quarter turn.
    turns = np.asarray(np.pi / 2 * np.arange(-4, 5), dtype=np.float64)
    return reachable(operator.object_heading + turns)

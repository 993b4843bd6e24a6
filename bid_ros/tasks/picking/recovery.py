"""Start states of recovery demonstrations: after a grasp that missed the cup, or that holds it off its middle.

The way into such a state is not demonstrated, or a policy would learn to miss.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.sim.twin import Array

HELD_SHARE: Final = 0.35
NEAR_SHARE: Final = 0.6  # share of missed grasps with the tool still beside the cup; else on the way to the saucer
LOW_SHARE: Final = 0.6  # share of missed grasps with the tool still at grasp height, where that is clear of the cup
# From the cup's axis to where the pads hold the cup, along the pads, m. Beyond 10 mm they squeeze the twin's cup away.
OFF_AXIS: Final = (0.003, 0.0095)
# Distance of the closed fingers from the cup's axis, m. The smallest is clear of the cup.
BESIDE: Final = (0.055, 0.150)
SPREAD: Final = 0.03  # m, distance of positions on the way to the saucer from the straight line
HIGHEST: Final = 0.19  # m, largest height of the tool over the table


@dataclass(frozen=True)
class Recovery:
    """The start state of one recovery.

    Attributes:
        held: the cup is between the fingers. Otherwise they are closed and empty.
        position: ``(3,)`` position of the tool, m, base frame.
    """

    held: bool
    position: Array


def draw_recovery(seed: int, cup: Array, saucer: Array, grasp_z: float, clear_z: float) -> Recovery:
    """Return the start state of the recovery of a seed.

    Args:
        seed: 0 or more.
        cup, saucer: ``(2,)`` positions of their middles, m, base frame.
        grasp_z: height of the tool at a grasp, m; clear_z: height at which closed fingers are well above the rim.
    """
    random = np.random.default_rng([seed, 2])
    if random.uniform() < HELD_SHARE:
        along = random.choice((-1.0, 1.0)) * random.uniform(*OFF_AXIS)
        return Recovery(True, np.array([cup[0] + along, cup[1], grasp_z]))
    if random.uniform() < NEAR_SHARE:
        angle = random.uniform(-np.pi, np.pi)
        place = cup + random.uniform(*BESIDE) * np.array([np.cos(angle), np.sin(angle)])
    else:
        place = cup + random.uniform(0.0, 1.1) * (saucer - cup) + random.normal(0.0, SPREAD, 2)
    clear = float(np.linalg.norm(place - cup)) >= BESIDE[0]
    low = clear and random.uniform() < LOW_SHARE
    height = grasp_z + random.uniform(0.0, 0.02) if low else random.uniform(clear_z, HIGHEST)
    return Recovery(False, np.array([*place, height]))

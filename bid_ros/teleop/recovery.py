"""How a demonstration of recovering begins: after a grasp that missed the cup, or that holds it off its middle.

What leads there is not demonstrated, or a policy would learn to miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HELD_SHARE: Final = 0.35
NEAR_SHARE: Final = 0.6  # of the missed grasps with the tool still beside the cup; else it is on the way to the saucer
LOW_SHARE: Final = 0.6  # of the missed grasps with the tool still as low as it grasps, where that is clear of the cup


@dataclass(frozen=True)
class RecoveryConfig:
    """Where recoveries begin.

    Attributes:
        off_axis: range of how far from the cup's axis the pads hold it, along the pads, m. Beyond 10 mm they squeeze
            the twin's cup away.
        beside: range of the closed fingers' distance from the cup's axis, m; the least one is clear of the cup.
        spread: of the places on the way to the saucer, beside the straight line, m.
        highest: of the tool over the table, m.
    """

    off_axis: tuple[float, float] = (0.003, 0.0095)
    beside: tuple[float, float] = (0.055, 0.150)
    spread: float = 0.03
    highest: float = 0.19


@dataclass(frozen=True)
class Recovery:
    """Where one recovery begins.

    Attributes:
        held: the cup is between the fingers; else they are closed and empty.
        position: ``(3,)`` of the tool, m, base frame.
    """

    held: bool
    position: Array


def draw_recovery(
    seed: int, cup: Array, saucer: Array, grasp_z: float, clear_z: float, config: RecoveryConfig | None = None
) -> Recovery:
    """Return how the recovery of a seed begins.

    Args:
        seed: 0 or more.
        cup, saucer: ``(2,)`` of their middles, m, base frame.
        grasp_z: height of the tool at a grasp, m; clear_z: where closed fingers are well over the rim.
        config: ranges.
    """
    config = config or RecoveryConfig()
    random = np.random.default_rng([seed, 2])
    if random.uniform() < HELD_SHARE:
        along = random.choice((-1.0, 1.0)) * random.uniform(*config.off_axis)
        return Recovery(True, np.array([cup[0] + along, cup[1], grasp_z]))
    if random.uniform() < NEAR_SHARE:
        angle = random.uniform(-np.pi, np.pi)
        place = cup + random.uniform(*config.beside) * np.array([np.cos(angle), np.sin(angle)])
    else:
        place = cup + random.uniform(0.0, 1.1) * (saucer - cup) + random.normal(0.0, config.spread, 2)
    clear = float(np.linalg.norm(place - cup)) >= config.beside[0]
    low = clear and random.uniform() < LOW_SHARE
    height = grasp_z + random.uniform(0.0, 0.02) if low else random.uniform(clear_z, config.highest)
    return Recovery(False, np.array([*place, height]))

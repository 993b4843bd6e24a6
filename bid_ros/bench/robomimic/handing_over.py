"""What two people say to each other who hand something over, and what they agreed on before."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.scripted_operator import Array

ORDERS: Final = {"at once": 0.6, "lid first": 0.2, "bin first": 0.2}
"""Who begins when, and the share of the pairs that do it so: both at once; the second when the lid is off; the first
takes the hammer when the other bin is cleared."""


@dataclass(frozen=True)
class Agreement:
    """What differs from pair to pair.

    Attributes:
        order: of :data:`ORDERS`.
        place: ``(3,)`` m, half way between the two hands as the hammer is handed over.
        turn: rad, of the handle about the vertical, from where the first arm looks.
        leans: rad, by which the fingers of each arm then point forward.
    """

    order: str
    place: Array
    turn: float
    leans: tuple[float, float]


@dataclass
class Talk:
    """What the two say.

    Attributes:
        uncovered: the lid is off.
        cleared: the target bin is empty.
        offered: the first holds the hammer where the second is to take it.
        taken: the second holds it.
        left: the first has let it go, and is away from it.
        lost: the first does not get the hammer any more.
    """

    uncovered: bool = False
    cleared: bool = False
    offered: bool = False
    taken: bool = False
    left: bool = False
    lost: bool = False


def draw_agreement(random: np.random.Generator) -> Agreement:
    """Draw what a pair agrees on."""
    return Agreement(
        order=str(random.choice(list(ORDERS), p=list(ORDERS.values()))),
        place=np.array([random.uniform(-0.10, 0.10), random.uniform(-0.01, 0.01), random.uniform(1.00, 1.14)]),
        turn=float(random.uniform(-0.5, 0.5)),
        # Half way there the arms are all but straight; hands that lean have a shorter way.
        leans=(float(random.uniform(0.12, 0.30)), float(random.uniform(0.15, 0.35))),
    )

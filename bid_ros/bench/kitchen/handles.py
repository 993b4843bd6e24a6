"""How the kitchen's operator takes hold of a handle or pushes at one, with misses and what mends them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.kitchen.arm import hand_turn
from bid_ros.bench.kitchen.scripted_operator import CLOSED, OPEN, Array, KitchenOperator, Motion

BEFORE: Final = 0.10  # m in front of a handle where the hand waits
CLOSE_S: Final = 0.4
MOST_GRASPS: Final = 4


@dataclass(frozen=True)
class Handle:
    """Something to take hold of.

    Attributes:
        place: where the hand is when it holds it, m, as it is now.
        angles: yaw, pitch and roll of the hand, rad.
        posture: joints ``(7,)`` near those that hold it, rad.
        held: m; closed fingers that are further apart hold it.
        above: m that the hand comes in higher than it takes hold, before it goes down in front.
    """

    place: Callable[[], Array]
    angles: Array
    posture: Array
    held: float
    above: float = 0.0


def take(operator: KitchenOperator, handle: Handle) -> Motion:
    """Take hold of a handle, and again as long as it was missed."""
    for attempt in range(MOST_GRASPS):
        missed = attempt == 0 and operator.random.uniform() < 0.7 * operator.skill.miss
        if attempt == 0:
            yield from come(operator, handle.posture, handle.place, handle.angles, handle.above)
        yield from operator.grip(OPEN, 0.0)
        short = operator.random.uniform(0.06, 0.08) if missed else 0.0
        aim = operator.random.normal(0.0, operator.skill.aim / 2, 3)
        yield from operator.move(handle.place() + aim - short * operator.ahead, pace=0.7)
        yield from operator.grip(CLOSED, CLOSE_S * operator.random.uniform(1.0, 1.4))
        if operator.opening > handle.held:
            return
        yield from operator.wait(operator.skill.notice)
        yield from operator.grip(OPEN, operator.random.uniform(0.1, 0.3))
        yield from operator.move(handle.place() - BEFORE * operator.ahead)
        yield from operator.hesitate()


def come(
    operator: KitchenOperator, posture: Array, place: Callable[[], Array], angles: Array, above: float = 0.0
) -> Motion:
    """Bring the hand in front of a place."""
    ahead, up = hand_turn(*angles)[:, 2], np.array([0.0, 0.0, above])
    before = place() - operator.random.uniform(0.9, 1.2) * BEFORE * ahead
    yield from operator.reach(posture, before + up, angles)
    yield from operator.hesitate()
    if above:
        yield from operator.move(before)


def leave(operator: KitchenOperator, far: float = BEFORE, aside: Array | None = None) -> Motion:
    """Open the fingers, and draw the hand back.

    Args:
        operator: who does it.
        far: m, about.
        aside: ``(3,)`` m, where it goes from there, so that it catches on nothing; None: nowhere.
    """
    yield from operator.grip(OPEN, 0.25)
    yield from operator.move(operator.place - operator.random.uniform(0.95, 1.2) * far * operator.ahead)
    if aside is not None:
        yield from operator.move(operator.place + aside)
    yield from operator.hesitate()


def arc(operator: KitchenOperator, hinge: Array, angle: float, yaw: float = 0.0) -> Motion:
    """Move the hand round a vertical axis.

    Args:
        operator: who does it.
        hinge: ``(2,)`` x and y of the axis, m.
        angle: rad, to the left as seen from above.
        yaw: rad by which the hand turns meanwhile.
    """
    start, first = operator.place, operator.angles
    arm = start[:2] - hinge

    def path(share: float) -> tuple[Array, Array]:
        cosine, sine = np.cos(share * angle), np.sin(share * angle)
        across = hinge + np.array([cosine * arm[0] - sine * arm[1], sine * arm[0] + cosine * arm[1]])
        return np.append(across, start[2]), first + share * np.array([yaw, 0.0, 0.0])

    yield from operator.sweep(path, 0.8)
    yield from operator.settle()


def push(operator: KitchenOperator, start: Array, end: Array) -> Motion:
    """Put the closed fingers beside something, and push it aside; again if they did not go in deep enough.

    Args:
        operator: who does it; the hand is in front.
        start: ``(3,)`` m, beside it.
        end: ``(3,)`` m.
    """
    if operator.random.uniform() < 0.6 * operator.skill.miss:
        short = operator.random.uniform(0.05, 0.07) * operator.ahead
        yield from operator.move(start - short, pace=0.8)
        yield from operator.move(end - short, pace=0.8)
        yield from operator.wait(operator.skill.notice)
        yield from operator.move(start - short)
    yield from operator.move(start, pace=0.8)
    yield from operator.hesitate()
    yield from operator.move(end, pace=0.8)

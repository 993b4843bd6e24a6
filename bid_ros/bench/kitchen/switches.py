"""Scripted operators turn the knobs of the burners, and switch on the light."""

from typing import Final

import numpy as np

from bid_ros.bench.kitchen.handles import Handle, arc, come, leave, push, take
from bid_ros.bench.kitchen.scripted_operator import CLOSED, Array, KitchenOperator, Motion

KNOB_POSTURE: Final = np.array([-0.95, -1.12, 1.30, -2.47, 0.0, 1.92, 1.05])
LIGHT_POSTURE: Final = np.array([-0.97, -1.23, 1.29, -2.48, -0.14, 1.92, 1.27])
KNOB_IN: Final = np.array([0.0, -0.042, 0.0])  # m from the middle of a knob's bar to the hand that holds it
WIDE: Final = 0.033  # m from the middle of the bar to that of closed fingers beside it
END: Final = 0.037  # m along the bar, where it is pushed
LIGHT_SIDE: Final = np.array([0.055, -0.055, 0.0])  # m from the end of the switch to closed fingers right of it
LIGHT_IN: Final = np.array([0.0, -0.03, 0.0])  # m from the end of the switch to the hand that holds it
LIGHT_AXIS: Final = np.array([-0.40, 0.691])  # m, x and y, about which it turns
LIGHT_WAY: Final = 0.15  # m, to the left
WEDGE: Final = 0.25  # rad by which the hand turns, as closed fingers are a wedge whose tip is to touch first
LEAD: Final = 0.4  # rad by which the hand is ahead of a knob, which turns as slowly as it is pushed


def bottom_burner(operator: KitchenOperator) -> Motion:
    """Turn the lower left knob."""
    yield from _knob(operator, "knob2_site", 2, pitch=0.15)


def top_burner(operator: KitchenOperator) -> Motion:
    """Turn the upper left knob."""
    yield from _knob(operator, "knob4_site", 6, pitch=0.0)


def light_switch(operator: KitchenOperator) -> Motion:
    """Push the switch to the left with closed fingers, or take it and turn it."""
    random = operator.random
    height = np.array([0.0, 0.0, random.uniform(-0.012, 0.012)])
    if random.uniform() < 0.6:
        yield from operator.grip(CLOSED, 0.0)
        start = operator.arm.site("light_site") + LIGHT_SIDE + height
        yield from come(operator, LIGHT_POSTURE, lambda: start, np.zeros(3))
        yield from push(operator, start, start - np.array([LIGHT_WAY, 0.0, 0.0]))
    else:
        yield from take(
            operator,
            Handle(lambda: operator.arm.site("light_site") + LIGHT_IN + height, np.zeros(3), LIGHT_POSTURE, 0.030),
        )
        yield from arc(operator, LIGHT_AXIS, -0.85 - float(operator.state.block[8]), yaw=-0.35)
    yield from leave(operator)


def _knob(operator: KitchenOperator, site: str, joint: int, pitch: float) -> Motion:
    """Take the bar of a knob and turn the hand, or push the bar's upper end to the right."""
    random, middle = operator.random, operator.arm.site(site)
    wanted = random.uniform(0.72, 0.95)

    def turned() -> float:
        return -float(operator.state.block[joint])

    if random.uniform() < 0.5:
        angles = np.array([0.0, pitch, turned()])
        yield from take(operator, Handle(lambda: middle + KNOB_IN, angles, KNOB_POSTURE, 0.015))
        more = np.array([0.0, 0.0, wanted + LEAD - turned()])
        first = operator.angles
        yield from operator.sweep(lambda share: (operator.place, first + share * more))
        yield from operator.hold(lambda: turned() > wanted, 1.5)
    else:
        lead, angles = random.uniform(0.3, 0.45), np.array([-WEDGE, pitch, 0.0])
        yield from operator.grip(CLOSED, 0.0)
        yield from come(operator, KNOB_POSTURE, lambda: beside_bar(middle, turned()), angles)
        yield from operator.move(beside_bar(middle, turned()), pace=0.8)
        yield from operator.hesitate()
        yield from operator.track(lambda: (beside_bar(middle, turned() + lead), angles), lambda: turned() > wanted, 4.0)
    yield from leave(operator)


def beside_bar(middle: Array, turned: float) -> Array:
    """Return where closed fingers are left of the upper end of a bar that is turned by an angle, rad."""
    cosine, sine = np.cos(turned), np.sin(turned)
    end = END * np.array([sine, 0.0, cosine]) - WIDE * np.array([cosine, 0.0, -sine])
    return np.asarray(middle + KNOB_IN + end)

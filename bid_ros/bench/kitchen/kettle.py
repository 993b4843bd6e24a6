"""A scripted operator moves the kettle to the burner behind it."""

from typing import Final

import numpy as np

from bid_ros.bench.kitchen.handles import Handle, leave, take
from bid_ros.bench.kitchen.scripted_operator import KitchenOperator, Motion

POSTURE: Final = np.array([-0.54, -1.70, 2.25, -2.36, -0.38, 0.68, 0.97])
BEHIND: Final = np.array([-1.80, -1.73, 1.95, -1.50, -1.0, 0.9, 1.2])  # joints near those that put it down, rad
BURNER: Final = np.array([-0.23, 0.74])  # m, x and y
FAR: Final = 0.16  # m, until a finger cannot catch the handle on its way up
HELD: Final = 0.055  # m; its handle measures 64 mm
ROLL: Final = -np.pi / 2  # the fingers close from above and below


def kettle(operator: KitchenOperator) -> Motion:
    """Take the kettle at its handle, lift it and put it down behind."""
    random = operator.random
    turn = random.uniform()
    angles = np.array([-0.45 + 0.3 * turn, -0.32 + 0.2 * turn, ROLL])
    handle = Handle(lambda: operator.arm.site("kettle_site"), angles, POSTURE, HELD, above=random.uniform(0.05, 0.1))
    yield from take(operator, handle)
    yield from operator.hesitate()
    height = random.uniform(0.03, 0.08)
    yield from operator.move(operator.place + np.array([0.0, 0.0, height]), pace=0.7)
    if operator.opening < HELD:  # it slipped out
        yield from leave(operator)
        return
    operator.arm.usual = BEHIND
    way = BURNER + random.normal(0.0, 0.015, 2) - operator.state.block[14:16]
    start, bow = operator.place, np.array([random.uniform(-0.05, 0.05), 0.0, random.uniform(0.0, 0.05)])
    carry = np.array([*way, 0.0])
    yield from operator.sweep(lambda share: (start + share * carry + np.sin(np.pi * share) * bow, angles))
    yield from operator.settle()
    yield from operator.hesitate()
    yield from operator.move(operator.place - np.array([0.0, 0.0, height - 0.005]), pace=0.6)
    yield from leave(operator, FAR)

"""Scripted operators open doors: of the microwave, of the cabinet that slides, and of the one with a hinge."""

from typing import Final

import numpy as np

from bid_ros.bench.kitchen.handles import Handle, arc, come, leave, push, take
from bid_ros.bench.kitchen.scripted_operator import CLOSED, Array, KitchenOperator, Motion

UP: Final = np.array([0.0, 0.0, 1.0])
RIGHT: Final = np.array([1.0, 0.0, 0.0])
# Joints near those that reach each handle, rad.
MICROWAVE_POSTURE: Final = np.array([-1.12, -1.70, 1.97, -1.56, -0.02, 1.19, 1.89])
SLIDE_POSTURE: Final = np.array([-0.42, -0.65, 0.54, -2.08, -0.33, 1.49, 0.64])
HINGE_POSTURE: Final = np.array([-1.23, -0.97, 1.28, -1.29, 0.15, 1.0, 0.79])
MICROWAVE_HINGE: Final = np.array([-1.128, 0.455])  # m, x and y
CABINET_HINGE: Final = np.array([-0.224, 0.711])
FROM_DOOR: Final = np.array([0.03, -0.08, -0.10])  # m, below the door that was opened
FIST: Final = 0.085  # m from the middle of a handle to that of closed fingers beside it
DEEP: Final = 0.05  # m that fingers which push are behind those which hold


def microwave(operator: KitchenOperator) -> Motion:
    """Take the handle of the microwave and pull its door open."""
    random = operator.random
    height, angles = random.uniform(-0.03, 0.06) * UP, np.array([random.uniform(-0.1, 0.15), 0.3, 0.0])
    handle = Handle(lambda: operator.arm.site("microhandle_site") + height, angles, MICROWAVE_POSTURE, 0.030)
    yield from take(operator, handle)
    yield from operator.hesitate()
    yield from arc(operator, MICROWAVE_HINGE, -_missing(operator, 13, random.uniform(0.62, 0.78)))
    yield from leave(operator, 0.13)


def slide_cabinet(operator: KitchenOperator) -> Motion:
    """Open the sliding door: push its handle from the left, or take hold of it."""
    random = operator.random
    height, way = random.uniform(-0.09, 0.02) * UP, random.uniform(0.36, 0.41)
    if random.uniform() < 0.5:
        yield from operator.grip(CLOSED, 0.0)
        yield from come(operator, SLIDE_POSTURE, lambda: _slide(operator) + height - FIST * RIGHT, np.zeros(3))
        start = _slide(operator) + height - FIST * RIGHT - DEEP * operator.ahead
        yield from push(operator, start, start + (_missing(operator, 10, way) + FIST - 0.03) * RIGHT)
    else:
        yield from take(operator, Handle(lambda: _slide(operator) + height, np.zeros(3), SLIDE_POSTURE, 0.030))
        yield from operator.move(operator.place + _missing(operator, 10, way) * RIGHT)
    yield from leave(operator)


def hinge_cabinet(operator: KitchenOperator) -> Motion:
    """Take the handle of the right door and pull it round its hinge."""
    random = operator.random
    height, yaw = random.uniform(-0.10, -0.02) * UP, random.uniform(-0.15, 0.1)
    angles = np.array([yaw, 0.0, 0.0])
    handle = Handle(lambda: operator.arm.site("hinge_site2") + height, angles, HINGE_POSTURE, 0.030)
    yield from take(operator, handle)
    yield from operator.hesitate()
    yield from arc(operator, CABINET_HINGE, _missing(operator, 12, random.uniform(1.35, 1.48)))
    yield from leave(operator, aside=FROM_DOOR)


def _slide(operator: KitchenOperator) -> Array:
    return operator.arm.site("slide_site")


def _missing(operator: KitchenOperator, joint: int, wanted: float) -> float:
    """Return how far a joint of the kitchen is from being open by ``wanted``, rad or m; at least 0."""
    return max(wanted - abs(float(operator.state.block[joint])), 0.0)

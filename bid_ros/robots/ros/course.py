"""A joint motion from rest to rest, streamed.

Source: Flash and Hogan, "The coordination of arm movements", 1985, equation 3 (the minimum-jerk course).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.robots.base import Dynamics
from bid_ros.robots.ros.limits import DriverLimits

PEAK_SPEED: Final = 1.875  # of the course over its mean speed
PEAK_ACCELERATION: Final = 10 / math.sqrt(3)  # of the course over distance / duration^2
SHORTEST_S: Final = 0.2
PERIOD_S: Final = 0.01  # between two targets
LONGEST_S: Final = 0.03  # by which a course advances from one target to the next, however late that is
ARRIVED_RAD: Final = 0.01
SETTLE_S: Final = 1.0
POLL_S: Final = 0.005


@dataclass(frozen=True)
class MinimumJerkCourse:
    """The minimum-jerk course between two postures.

    Attributes:
        start, offset: ``(n,)`` rad.
        duration_s: s.
    """

    start: Array
    offset: Array
    duration_s: float

    @classmethod
    def between(cls, start: Array, goal: Array, limits: DriverLimits, share: Dynamics) -> Self:
        """Return the course that uses a share of the limits at most; the share of the jerk is ignored."""
        way = limits.way(start, goal)
        distance = np.abs(way)
        by_speed = float((PEAK_SPEED * distance / (share.velocity * limits.speed)).max())
        by_acceleration = math.sqrt(
            PEAK_ACCELERATION * float(distance.max()) / (share.acceleration * limits.acceleration)
        )
        return cls(start, way, max(by_speed, by_acceleration, SHORTEST_S))

    def at(self, seconds: float) -> tuple[Array, Array]:
        """Return joints and speeds ``(n,)``, rad and rad/s, so many s after the start."""
        s = min(max(seconds / self.duration_s, 0.0), 1.0)
        share = 10 * s**3 - 15 * s**4 + 6 * s**5
        rate = (30 * s**2 - 60 * s**3 + 30 * s**4) / self.duration_s
        return self.start + share * self.offset, rate * self.offset


def stream_course(course: MinimumJerkCourse, follow: Callable[[Array, Array], bool]) -> bool:
    """Stream a course and wait for its end. After a pause it goes on from where it was.

    Args:
        course: the course.
        follow: takes joints and speeds ``(n,)``, rad and rad/s, and returns whether to go on.

    Returns:
        Whether it came to its end.
    """
    before, passed = time.monotonic(), 0.0
    while passed < course.duration_s:
        now = time.monotonic()
        before, passed = now, passed + min(now - before, LONGEST_S)
        if not follow(*course.at(passed)):
            return False
        time.sleep(PERIOD_S)
    return True


def settled(missed: Callable[[], float]) -> float:
    """Wait until joints have followed the end of a motion, or for ``SETTLE_S``; return their distance from it, rad."""
    end = time.monotonic() + SETTLE_S
    while (off := missed()) > ARRIVED_RAD and time.monotonic() < end:
        time.sleep(POLL_S)
    return off

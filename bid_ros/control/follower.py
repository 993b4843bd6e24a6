"""The follower: velocities that follow a moving target inside limits of speed and acceleration.

The same laws serve positions (m) and rotation vectors (rad). A new velocity lies on the straight line from the old one
to one inside the speed limit, at most ``acceleration * dt`` away. So both limits always hold, whatever the target does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bid_ros.control.spatial import Vector, add, norm, shortened, times

Row: TypeAlias = Sequence[float]

# Share of the acceleration planned for braking towards the target. The rest is left for the target's own changes.
BRAKING_SHARE = 0.7


@dataclass(frozen=True)
class FollowerLimits:
    """Limits of one follower: top speed and acceleration in m/s and m/s^2, or rad/s and rad/s^2."""

    speed: float
    acceleration: float


def closing_speed(distance: float, acceleration: float, time_constant: float) -> float:
    """Return the speed at which to approach a target at rest ``distance`` away.

    Near the target it is ``distance / time_constant``. Further away it is ``v^2 = 2 a d``, shifted so that value and
    slope agree where the two meet. So the deceleration never exceeds ``acceleration``.
    """
    meeting = acceleration * time_constant * time_constant
    if distance <= meeting:
        return distance / time_constant
    return math.sqrt(2.0 * acceleration * (distance - 0.5 * meeting))


def pursue(
    velocity: Vector, error: Vector, feed_forward: Vector, motion: FollowerLimits, time_constant: float, dt: float
) -> Vector:
    """Return the next velocity towards a moving target.

    Args:
        velocity: present velocity, within the speed limit.
        error: from the present position to the target's position at the end of this step.
        feed_forward: velocity of the target.
        motion: limits.
        time_constant: s in which a small error falls to 1/e.
        dt: s of this step, positive.
    """
    # The error that remains after this step moved with the target. Otherwise the follower would lead by one step.
    gap = add(error, feed_forward, -dt)
    distance = norm(gap)
    wanted = feed_forward
    if distance > 0.0:
        speed = closing_speed(distance, BRAKING_SHARE * motion.acceleration, time_constant)
        wanted = add(feed_forward, gap, speed / distance)
    wanted = shortened(wanted, motion.speed)
    return add(velocity, shortened(add(wanted, velocity, -1.0), motion.acceleration * dt))


def brake(velocity: Vector, acceleration: float, dt: float) -> Vector:
    """Return the next velocity of a straight stop at ``acceleration``. It ends at exactly zero."""
    speed = norm(velocity)
    if speed <= acceleration * dt:
        return (0.0, 0.0, 0.0)
    return times(velocity, 1.0 - acceleration * dt / speed)


def stopping_point(place: Vector, velocity: Vector, acceleration: float) -> Vector:
    """Return the point where a straight stop from ``place`` at ``velocity`` ends at the latest."""
    return add(place, velocity, norm(velocity) / (2.0 * acceleration))


def no_further_out(there: Row, low: Row, high: Row, here: Row) -> bool:
    """Return whether ``there`` lies in the box from ``low`` to ``high``, or no further outside it than ``here``."""
    for value, least, most, now in zip(there, low, high, here, strict=True):
        if not min(least, now) <= value <= max(most, now):
            return False
    return True


def kept_inside(place: Row, rates: Row, low: Row, high: Row) -> tuple[list[float], list[float]]:
    """Return a place moved into the box from ``low`` to ``high``, and its rates: 0 where it was moved."""
    kept = [min(max(value, least), most) for value, least, most in zip(place, low, high, strict=True)]
    return kept, [rate if value == inner else 0.0 for rate, value, inner in zip(rates, place, kept, strict=True)]

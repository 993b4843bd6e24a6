"""The follower of joints: velocities that follow a moving posture inside limits of speed and acceleration.

The laws are those of :mod:`bid_ros.control.follower`, joint by joint. A new velocity lies on the straight line from the
old one to the wanted one. So the tool keeps a speed that it keeps at both ends. Joints are plain tuples here, as in
:mod:`bid_ros.control.spatial`: a UR's process steps up to 500 times a second.
"""

from typing import TypeAlias

from bid_ros.control.follower import BRAKING_SHARE, closing_speed

Joints: TypeAlias = tuple[float, ...]
"""One value a joint, base to flange."""


def wanted_speeds(
    error: Joints, feed_forward: Joints, speed: Joints, acceleration: Joints, time_constant: float, dt: float
) -> Joints:
    """Return the speeds at which to approach a moving posture, rad/s, inside the limits of speed.

    Args:
        error: rad, from the present posture to that of the target at the end of this step.
        feed_forward: rad/s, of the target.
        speed, acceleration: limits of each joint.
        time_constant: s in which a small error falls to 1/e.
        dt: s of this step, positive.
    """
    wanted = []
    for way, ahead, fastest, most in zip(error, feed_forward, speed, acceleration, strict=True):
        # As in `pursue`: the error that remains after this step moved with the target.
        gap = way - ahead * dt
        closing = closing_speed(abs(gap), BRAKING_SHARE * most, time_constant)
        value = ahead + (closing if gap > 0.0 else -closing)
        wanted.append(min(max(value, -fastest), fastest))
    return tuple(wanted)


def towards(velocity: Joints, wanted: Joints, acceleration: Joints, dt: float) -> Joints:
    """Return the next velocity on the straight line to the wanted one, no joint faster than its acceleration lets."""
    share = 1.0
    for now, then, most in zip(velocity, wanted, acceleration, strict=True):
        change = abs(then - now)
        if change * share > most * dt:
            share = most * dt / change
    if share == 1.0:
        return wanted
    return tuple(now + share * (then - now) for now, then in zip(velocity, wanted, strict=True))


def brake_time(velocity: Joints, acceleration: Joints) -> float:
    """Return the s of a straight stop, in which all joints come to rest together."""
    return max(abs(value) / most for value, most in zip(velocity, acceleration, strict=True))


def brake_joints(velocity: Joints, acceleration: Joints, dt: float) -> Joints:
    """Return the next velocity of a straight stop. It ends at exactly zero."""
    left = brake_time(velocity, acceleration)
    if left <= dt:
        return (0.0,) * len(velocity)
    return tuple(value * (1.0 - dt / left) for value in velocity)


def stopping_posture(place: Joints, velocity: Joints, acceleration: Joints) -> Joints:
    """Return the posture where a straight stop from ``place`` at ``velocity`` ends at the latest."""
    half = 0.5 * brake_time(velocity, acceleration)
    return moved(place, velocity, half)


def moved(place: Joints, velocity: Joints, seconds: float) -> Joints:
    """Return the posture after ``seconds`` at ``velocity``."""
    return tuple(value + seconds * rate for value, rate in zip(place, velocity, strict=True))


def slowed(velocity: Joints, share: float) -> Joints:
    """Return ``share`` of the velocity, at most the whole."""
    return velocity if share >= 1.0 else tuple(share * value for value in velocity)

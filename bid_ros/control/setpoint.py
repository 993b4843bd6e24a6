"""The set-points: what a servo hands to a robot driver."""

from dataclasses import dataclass

from bid_ros.core.rotation import Array


@dataclass(frozen=True)
class Setpoint:
    """Where the tool should be now, and how it moves there.

    Attributes:
        position: ``(3,)`` m, base frame.
        quaternion: ``(4,)`` xyzw, unit, tool to base.
        linear_velocity, angular_velocity: ``(3,)`` m/s and rad/s, along base axes.
    """

    position: Array
    quaternion: Array
    linear_velocity: Array
    angular_velocity: Array


@dataclass(frozen=True)
class JointSetpoint:
    """Where the joints should be now, and how they move there.

    Attributes:
        positions: ``(joints,)`` rad, base to flange.
        velocities: ``(joints,)`` rad/s.
    """

    positions: Array
    velocities: Array

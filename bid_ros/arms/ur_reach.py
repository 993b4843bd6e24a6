"""Which set-points and joint targets a UR can reach, decided before the controller has to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from bid_ros.arms.base import Array
from bid_ros.arms.spatial import Quaternion, Vector, add, norm, times, turned
from bid_ros.arms.ur_config import UrConfig
from bid_ros.arms.ur_follower import TimedSetpoint
from bid_ros.arms.ur_kinematics import Posture, ur_kinematics
from bid_ros.rotation import matrix_from_quaternion

# The joints are looked at over the time that a stop takes, and over this long at least, s.
SHORTEST_S: Final = 0.02


class Reach:
    """Checks against the nominal kinematics, about 0.1 ms a set-point.

    Args:
        config: model, tool and limits.
    """

    def __init__(self, config: UrConfig) -> None:
        self._config = config
        self._kinematics = ur_kinematics(config.model, config.tool_offset, config.tool_quaternion)

    def outside(self, joints: Sequence[float]) -> str:
        """Return one sentence if joint positions ``(6,)`` rad lie outside the limits, else an empty one."""
        limits = zip(joints, self._config.joint_min, self._config.joint_max, strict=True)
        for number, (value, low, high) in enumerate(limits, 1):
            if not low <= value <= high:
                return (
                    f"joint {number} of the robot at {self._config.address} would be at {value:.3f} rad; "
                    f"valid is {low:.3f} to {high:.3f}"
                )
        return ""

    def refusal(self, setpoint: TimedSetpoint, joints: Sequence[float]) -> str:
        """Return one sentence if the arm cannot follow a set-point and come to rest after it, else an empty one.

        Args:
            setpoint: where the tool should be.
            joints: measured, ``(6,)`` rad.
        """
        posture = self._posture(setpoint.position, setpoint.quaternion, joints)
        if posture is None:
            return self._unreachable(setpoint.position, "a set-point")
        speed = norm(setpoint.linear_velocity)
        # Braking from the speed takes twice this, and passes this much way at full speed.
        ahead = max(SHORTEST_S, 0.5 * speed / self._config.max_acceleration)
        place = add(setpoint.position, setpoint.linear_velocity, ahead)
        later = self._posture(place, turned(setpoint.quaternion, times(setpoint.angular_velocity, ahead)), posture)
        if later is None:
            return self._unreachable(place, "the stop after a set-point")
        for number, (now, then) in enumerate(zip(posture, later, strict=True), 1):
            rate = abs(then - now) / ahead
            if rate > self._config.max_joint_speed:
                return (
                    f"a set-point needs {rate:.2f} rad/s of joint {number} of the robot at {self._config.address}, "
                    f"near a singular posture; valid is up to {self._config.max_joint_speed:g}"
                )
        return self.outside(posture)

    def _posture(self, position: Vector, quaternion: Quaternion, near: Sequence[float]) -> Posture | None:
        pose: Array = np.eye(4)
        pose[:3, :3] = matrix_from_quaternion(quaternion)
        pose[:3, 3] = position
        return self._kinematics.inverse(pose, near)

    def _unreachable(self, place: Vector, what: str) -> str:
        x, y, z = place
        distance = math.sqrt(x * x + y * y + z * z)
        return (
            f"{what} at [{x:.3f}, {y:.3f}, {z:.3f}] m has no inverse kinematics solution: the {self._config.model} at "
            f"{self._config.address} cannot hold its tool there, {distance:.2f} m from its base"
        )

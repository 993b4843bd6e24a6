"""The limits of the joints, from the URDF and from the configuration, and what breaks them as a sentence."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.urdf import UrdfChain


@dataclass(frozen=True)
class DriverLimits:
    """Limits of the arm's joints.

    Attributes:
        names: of the joints.
        address: of the robot.
        lower, upper: ``(n,)`` rad, infinite for a joint that turns on and on.
        speed: ``(n,)`` rad/s.
        acceleration: rad/s^2 of every joint.
    """

    names: tuple[str, ...]
    address: str
    lower: Array
    upper: Array
    speed: Array
    acceleration: float

    @classmethod
    def of(cls, config: RosConfig, chain: UrdfChain) -> Self:
        """Return the limits of a configuration, and of the chain where it names none.

        Raises:
            ArmError: neither knows a limit, or the configuration names other joints than the chain has.
        """
        if config.joint_names != chain.joint_names:
            raise ArmError(
                f"robot at {config.address}: joint_names are {', '.join(config.joint_names)}; valid is the order of "
                f"the URDF from {config.base_link} to {config.tool_link}: {', '.join(chain.joint_names)}"
            )
        found = {
            "joint_min": config.joint_min or chain.lower,
            "joint_max": config.joint_max or chain.upper,
            "joint_speed": config.joint_speed or chain.speed,
        }
        for field, values in found.items():
            for name, value in zip(chain.joint_names, values, strict=True):
                if math.isnan(value):
                    raise ArmError(
                        f"robot at {config.address}: the URDF has no limit for {field} of joint '{name}'; "
                        f"valid is {field} in robot.yaml, one number a joint"
                    )
        lower, upper, speed = (np.array(values) for values in found.values())
        return cls(chain.joint_names, config.address, lower, upper, speed, config.joint_acceleration)

    def outside(self, joints: Array) -> str:
        """Return one sentence if joints ``(n,)`` rad lie outside the limits; otherwise an empty text."""
        wrong = np.flatnonzero(~((joints >= self.lower) & (joints <= self.upper)))
        if not wrong.size:
            return ""
        first = int(wrong[0])
        return (
            f"joint '{self.names[first]}' of the robot at {self.address} would be at {joints[first]:.3f} rad; "
            f"valid is {self.lower[first]:.3f} to {self.upper[first]:.3f}"
        )

    def too_fast(self, speeds: Array) -> str:
        """Return one sentence if joint speeds ``(n,)`` rad/s are above the limits; otherwise an empty text."""
        wrong = np.flatnonzero(~(np.abs(speeds) <= self.speed))
        if not wrong.size:
            return ""
        first = int(wrong[0])
        return (
            f"a set-point needs {abs(speeds[first]):.2f} rad/s of joint '{self.names[first]}' of the robot at "
            f"{self.address}; valid is up to {self.speed[first]:g}"
        )

    def way(self, start: Array, goal: Array) -> Array:
        """Return the way ``(n,)`` rad between joints ``(n,)`` rad; of a joint that turns on and on the shorter one."""
        way = goal - start
        free = np.isinf(self.lower) & np.isinf(self.upper)
        return np.where(free, (way + math.pi) % (2 * math.pi) - math.pi, way)

    def stopping_s(self, speeds: Array) -> float:
        """Return the s in which joints with speeds ``(n,)`` rad/s come to rest together."""
        return float(np.abs(speeds).max()) / self.acceleration

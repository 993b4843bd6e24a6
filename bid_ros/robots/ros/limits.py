"""The limits of the joints, from the URDF and from the configuration, and what breaks them as a sentence.

Also how far joints may go in a while: the sum of their steps, held against their speed limits.
"""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.urdf import UrdfChain

BURST_S: Final = 0.05  # two set-points may come together on a busy computer
NEAR_RAD: Final = 0.02  # what a set-point at rest may ask of a joint beyond that


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


class JointPace:
    """Bounds what the steps of the joints add up to. In any T s a joint goes ``NEAR_RAD + (T + BURST_S) * speed``.

    So a single step may be early, but many of them may not.

    Args:
        limits: of the joints.
    """

    def __init__(self, limits: DriverLimits) -> None:
        self._limits = limits
        self._most = NEAR_RAD + BURST_S * limits.speed
        self._left, self._taken_s = self._most, 0.0

    def begin(self, now_s: float) -> None:
        """Begin at rest, at a steady time in s."""
        self._left, self._taken_s = self._most, now_s

    def since_s(self, now_s: float) -> float:
        """Return the s since the newest step, ``BURST_S`` at most."""
        return min(max(now_s - self._taken_s, 0.0), BURST_S)

    def take(self, step: Array, now_s: float) -> str:
        """Count a step of the joints.

        Args:
            step: ``(n,)`` rad.
            now_s: steady time in s.

        Returns:
            One sentence if the joints cannot go that fast, and the step is not counted; otherwise an empty text.
        """
        room = self._left + self._limits.speed * max(now_s - self._taken_s, 0.0)
        refusal = self._limits.too_fast(self._limits.speed * np.abs(step) / np.maximum(room, 1e-9))
        if not refusal:
            self._left, self._taken_s = np.clip(room - np.abs(step), 0.0, self._most), now_s
        return refusal

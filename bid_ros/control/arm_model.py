"""What is known of an arm whose joints are commanded: its limits, and where its tool is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from numpy.typing import ArrayLike

from bid_ros.control.chain import Chain
from bid_ros.control.link_shapes import LinkShape
from bid_ros.core.errors import ArmError
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array


@dataclass(frozen=True)
class JointLimits:
    """Limits of each joint, base to flange.

    Attributes:
        names: as in the robot's URDF.
        low, high: rad.
        speed: rad/s.
        acceleration: rad/s^2.

    Raises:
        ArmError: the limits are of different numbers of joints, or are not positive, or low is not below high.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    speed: tuple[float, ...]
    acceleration: tuple[float, ...]

    def __post_init__(self) -> None:
        counts = {len(self.names), len(self.low), len(self.high), len(self.speed), len(self.acceleration)}
        if len(counts) != 1:
            raise ArmError(f"joint limits are of {sorted(counts)} joints; valid is one of each for each joint")
        for name, low, high, speed, most in zip(
            self.names, self.low, self.high, self.speed, self.acceleration, strict=True
        ):
            if not (low < high and speed > 0 and most > 0):
                raise ArmError(
                    f"limits of joint {name} are {low} to {high} rad, {speed} rad/s and {most} rad/s^2; "
                    "valid is low < high, and the others above 0"
                )

    def within(self, limits: Limits) -> Self:
        """Return the limits that hold for a task: the smaller ones of robot and task."""
        return replace(
            self,
            speed=tuple(min(own, limits.max_joint_speed) for own in self.speed),
            acceleration=tuple(min(own, limits.max_joint_acceleration) for own in self.acceleration),
        )

    def inside(self, margin: float) -> Self:
        """Return the limits with ``margin`` rad less at either end of each joint."""
        return replace(
            self,
            low=tuple(value + margin for value in self.low),
            high=tuple(value - margin for value in self.high),
        )


@dataclass(frozen=True, eq=False)
class ArmModel:
    """An arm whose joints are commanded.

    Attributes:
        chain: kinematics, base to tool.
        limits: of the joints.
        rest: ``(joints,)`` rad, the posture towards which redundant joints are drawn.
        shapes: returns those of the links. None: nobody knows them.
        never_meet: pairs of links, by the joints that move them, that cannot touch though their shapes may.
    """

    chain: Chain
    limits: JointLimits
    rest: tuple[float, ...]
    shapes: Callable[[], tuple[LinkShape, ...]] | None = None
    never_meet: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.chain.joints == len(self.limits.names) == len(self.rest):
            counts = self.chain.joints, len(self.limits.names), len(self.rest)
            raise ArmError(f"an arm's chain, limits and rest are of {counts} joints; valid is the same number")

    @property
    def joints(self) -> int:
        """Number of joints."""
        return self.chain.joints

    def forward(self, joints: ArrayLike) -> tuple[Array, Array]:
        """Return the tool's positions and rotations, as :meth:`Chain.forward`."""
        return self.chain.forward(joints)

"""Homing: the tool goes up if it is low, across, and down if the start pose is low."""

import math
from dataclasses import astuple, dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.trajectory import Array, ChunkSource, MotionLimits, Move, Trajectory, end_of, turn_to
from bid_ros.core.errors import BidError
from bid_ros.core.limits import Limits

SIDEWAYS = 0.01  # m
MARGIN = 0.8  # share of a limit that homing uses: the safety node checks finite differences


@dataclass(frozen=True)
class HomingConfig:
    """How the arm homes.

    Attributes:
        linear: peaks in m/s, m/s^2, m/s^3; angular: in rad/s and so on.
        clearance: m. Below this height the tool only moves straight up or down, so that it hits nothing on the table.
            A target within 1 cm sideways is exempt.
    """

    linear: MotionLimits = field(default_factory=lambda: MotionLimits(0.25, 1.2, 12.0))
    angular: MotionLimits = field(default_factory=lambda: MotionLimits(0.5, 1.5, 20.0))
    clearance: float = 0.22

    def __post_init__(self) -> None:
        if not 0 < self.clearance <= 1:
            raise ValueError(f"homing: clearance is {self.clearance} m; valid is above 0, up to 1")


def homing_within(limits: Limits, config: HomingConfig | None = None) -> HomingConfig:
    """Return ``config``, slowed down to the task's limits. The safety node then lets the motion pass."""
    config = config or HomingConfig()
    return replace(
        config,
        linear=_slowed(config.linear, limits.max_speed, limits.max_acceleration, limits.max_jerk),
        angular=_slowed(config.angular, limits.max_turn_rate, limits.max_turn_acceleration, math.inf),
    )


class HomingPlan(ChunkSource):
    """A slow motion from the present tool pose to a start pose, as chunks of source ``episode``. Then the tool holds.

    Args:
        position, rotation_6d: ``(3,)`` m and ``(6,)``: present tool pose, base frame.
        target, target_rotation_6d: start pose, the same.
        gripper_width: m, commanded throughout.
        now_ns: ROS time at which the motion begins.
        config: speeds and clearance.

    Attributes:
        duration: of the motion in s.

    Raises:
        BidError: a pose is not finite.
    """

    def __init__(
        self,
        position: ArrayLike,
        rotation_6d: ArrayLike,
        target: ArrayLike,
        target_rotation_6d: ArrayLike,
        gripper_width: float,
        now_ns: int,
        config: HomingConfig | None = None,
    ) -> None:
        config = config or HomingConfig()
        start, end = np.asarray(position, dtype=np.float64), np.asarray(target, dtype=np.float64)
        turned, wanted = np.asarray(rotation_6d, dtype=np.float64), np.asarray(target_rotation_6d, dtype=np.float64)
        if not all(np.isfinite(values).all() for values in (start, end, turned, wanted)):
            raise BidError(f"homing from {start} to {end}; valid are finite poses")
        sideways = float(np.linalg.norm((end - start)[:2])) > SIDEWAYS
        above_start, above_end = (_raised(point, config.clearance) if sideways else point for point in (start, end))
        up = Move([start, above_start], config.linear)
        across = Move([above_start, above_end], config.linear, up.end_s)
        turns = turn_to(turned, wanted, config.angular, up.end_s)
        moves = (up, across, Move([above_end, end], config.linear, end_of([across], turns)))
        trajectory = Trajectory(
            position=start,
            rotation_6d=turned,
            moves=moves,
            turns=turns,
            widths=((0.0, gripper_width),),
            duration_s=end_of(moves, turns),
        )
        self.duration = trajectory.duration_s
        super().__init__(trajectory, now_ns, "episode")


def _raised(point: Array, height: float) -> Array:
    """Return the point (3,) straight above, at ``height`` m at least."""
    return np.array([point[0], point[1], max(point[2], height)])


def _slowed(own: MotionLimits, *most: float) -> MotionLimits:
    return MotionLimits(*(min(peak, MARGIN * limit) for peak, limit in zip(astuple(own), most, strict=True)))

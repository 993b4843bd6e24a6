"""Homing: the tool goes up if it is low, across, and down if the start pose is low."""

import math
from dataclasses import astuple
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.trajectory import Array, ChunkSource, MotionLimits, Move, Trajectory, end_of, turn_to
from bid_ros.core.errors import BidError
from bid_ros.core.limits import Limits

SIDEWAYS: Final = 0.01  # m; a target within it sideways is exempt from the clearance
# m. Below this height the tool only moves straight up or down, so that it hits nothing on the table.
CLEARANCE: Final = 0.22
MARGIN: Final = 0.8  # share of a limit that homing uses: the safety node checks finite differences
LINEAR: Final = MotionLimits(0.25, 1.2, 12.0)  # peaks in m/s, m/s^2, m/s^3
ANGULAR: Final = MotionLimits(0.5, 1.5, 20.0)  # the same in rad


class HomingPlan(ChunkSource):
    """A slow motion from the present tool pose to a start pose, as chunks of source ``episode``. Then the tool holds.

    Args:
        position, rotation_6d: ``(3,)`` m and ``(6,)``: present tool pose, base frame.
        target, target_rotation_6d: start pose, the same.
        gripper_width: m, commanded throughout.
        now_ns: ROS time at which the motion begins.
        limits: of the task, to which the motion slows down so that the safety node lets it pass. None: it may go at
            :data:`LINEAR` and :data:`ANGULAR`.
        slow: factor of its speed, above 0 and up to 1.

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
        limits: Limits | None = None,
        slow: float = 1.0,
    ) -> None:
        start, end = np.asarray(position, dtype=np.float64), np.asarray(target, dtype=np.float64)
        turned, wanted = np.asarray(rotation_6d, dtype=np.float64), np.asarray(target_rotation_6d, dtype=np.float64)
        if not all(np.isfinite(values).all() for values in (start, end, turned, wanted)):
            raise BidError(f"homing from {start} to {end}; valid are finite poses")
        sideways = float(np.linalg.norm((end - start)[:2])) > SIDEWAYS
        above_start, above_end = (_raised(point) if sideways else point for point in (start, end))
        linear, angular = (LINEAR, ANGULAR) if limits is None else _slowed(limits)
        if slow < 1.0:
            linear, angular = linear.at(slow), angular.at(slow)
        up = Move([start, above_start], linear)
        across = Move([above_start, above_end], linear, up.end_s)
        turns = turn_to(turned, wanted, angular, up.end_s)
        moves = (up, across, Move([above_end, end], linear, end_of([across], turns)))
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


def _raised(point: Array) -> Array:
    """Return the point (3,) straight above, at :data:`CLEARANCE` at least."""
    return np.array([point[0], point[1], max(point[2], CLEARANCE)])


def _slowed(limits: Limits) -> tuple[MotionLimits, MotionLimits]:
    """Return the peaks of moves and turns inside a task's limits, which have none for the jerk of a turn."""
    linear = limits.max_speed, limits.max_acceleration, limits.max_jerk
    angular = limits.max_turn_rate, limits.max_turn_acceleration, math.inf
    slowed = [
        MotionLimits(*(min(peak, MARGIN * limit) for peak, limit in zip(astuple(own), most, strict=True)))
        for own, most in ((LINEAR, linear), (ANGULAR, angular))
    ]
    return slowed[0], slowed[1]

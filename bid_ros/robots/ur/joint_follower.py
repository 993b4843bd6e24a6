"""The stream of joints of the UR's servo loop: smooth, at the robot's rate, from set-points that come less often."""

from dataclasses import dataclass
from typing import Final

from bid_ros.control.joint_follower import Joints, brake_joints, moved, towards, wanted_speeds
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.robots.ur.follower import TIME_CONSTANT_S, Follower

# A joint slower than this, rad/s, is at rest. It may be the last set-point.
REST_SPEED: Final = 0.002


@dataclass(frozen=True)
class TimedJoints:
    """A set-point of the joints and the steady time in ns at which it was given; rad and rad/s."""

    stamp_ns: int
    positions: Joints
    velocities: Joints


class UrJointFollower(Follower[TimedJoints, Joints]):
    """Follows set-points of the joints.

    Args:
        speed, acceleration: limits of each joint, rad/s and rad/s^2.
        silence_timeout_s, extrapolate_s: as :class:`bid_ros.robots.ur.follower.Follower`.
    """

    def __init__(self, speed: Joints, acceleration: Joints, silence_timeout_s: float, extrapolate_s: float) -> None:
        super().__init__((0.0,) * len(speed), silence_timeout_s, extrapolate_s)
        self._speed, self._acceleration = speed, acceleration
        self._velocity: Joints = self._place

    @property
    def at_rest(self) -> bool:
        """Whether the stream stands still."""
        return not any(self._velocity)

    def _rest(self) -> None:
        self._velocity = (0.0,) * len(self._speed)

    def _moves(self, target: TimedJoints) -> bool:
        return max(map(abs, (*self._velocity, *target.velocities))) > REST_SPEED

    def _advance(self, target: TimedJoints | None, age_ns: int, dt: float) -> None:
        if self._braking or target is None:
            self._velocity = brake_joints(self._velocity, self._acceleration, dt)
        else:
            fresh = age_ns <= self._extrapolate_ns
            ahead = min(max(age_ns, 0), self._extrapolate_ns) / NANOSECONDS
            goal = moved(target.positions, target.velocities, ahead)
            error = tuple(then - now for then, now in zip(goal, self._place, strict=True))
            following = target.velocities if fresh else (0.0,) * len(error)
            wanted = wanted_speeds(error, following, self._speed, self._acceleration, TIME_CONSTANT_S, dt)
            self._velocity = towards(self._velocity, wanted, self._acceleration, dt)
        self._place = moved(self._place, self._velocity, dt)

"""The streams of the UR's servo loop: smooth, at the robot's rate, from set-points that come less often.

Between two set-points the last one is extrapolated with its velocity. Extrapolate briefly; the sender's workspace check
does not cover it. The stream follows that moving target inside the arm's limits (:mod:`bid_ros.control.follower`), so
neither a jump of the set-point nor a late one is a jump of the robot.
"""

from abc import ABC, abstractmethod
from typing import Final, Generic, Protocol, TypeVar

from bid_ros.control.follower import FollowerLimits, brake, pursue
from bid_ros.control.joint_follower import Joints, brake_joints, moved, towards, wanted_speeds
from bid_ros.control.spatial import ZERO, Pose, Vector, add, norm, times, turn_between, turned
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.robots.protocol import REST_SPEED, REST_TURN_RATE, TimedJoints, TimedSetpoint

# s in which a small distance to the target falls to 1/e. It spans several set-points, which filters their jitter.
TIME_CONSTANT_S: Final = 0.03
# A late step counts as at most this long, so it makes no jump.
MAX_STEP_S: Final = 0.03
# A joint slower than this, rad/s, is at rest. It may be the last set-point.
REST_JOINT_SPEED: Final = 0.002


class Timed(Protocol):
    """A set-point and when it was given."""

    @property
    def stamp_ns(self) -> int:
        """Steady time in ns."""


TargetT = TypeVar("TargetT", bound=Timed)
PlaceT = TypeVar("PlaceT")


class Follower(ABC, Generic[TargetT, PlaceT]):
    """Follows the newest set-point. Brakes by itself when set-points stop while the arm moves.

    Not thread safe. Times are steady nanoseconds.

    Args:
        place: where it begins.
        silence_timeout_s: age of the newest set-point at which a moving arm brakes until :meth:`start`.
        extrapolate_s: age up to which it is extrapolated with its velocity. Then it is held.

    Attributes:
        silent: whether it stopped because no set-point came.
        moving: whether stream or set-point moved in the last step, or it braked.
        waited: share of the silence that is valid, in the last step of a moving arm; 0 at rest.
    """

    def __init__(self, place: PlaceT, silence_timeout_s: float, extrapolate_s: float) -> None:
        self._silence_ns = round(silence_timeout_s * NANOSECONDS)
        self._extrapolate_ns = round(extrapolate_s * NANOSECONDS)
        self._place = place
        self._target: TargetT | None = None
        self._last_ns = 0
        self._braking = False
        self.silent = self.moving = False
        self.waited = 0.0

    def start(self, place: PlaceT, now_ns: int) -> None:
        """Begin at rest at a place, and hold it until the first set-point."""
        self._place, self._last_ns = place, now_ns
        self._rest()
        self._target = None
        self._braking = self.silent = self.moving = False

    def accept(self, setpoint: TargetT) -> None:
        """Take the newest set-point. It is ignored while braking."""
        if not self._braking:
            self._target = setpoint

    def brake(self) -> None:
        """Come to rest on a straight line and stay there until :meth:`start`."""
        self._braking = True

    def step(self, now_ns: int) -> PlaceT:
        """Return where the arm should be at ``now_ns``."""
        dt = min(max(0, now_ns - self._last_ns) / NANOSECONDS, MAX_STEP_S)
        self._last_ns = now_ns
        target = self._target
        age_ns = 0 if target is None else now_ns - target.stamp_ns
        moves = target is not None and not self._braking and self._moves(target)
        self.moving = moves or self._braking
        self.waited = age_ns / self._silence_ns if moves else 0.0
        if self.waited > 1.0:
            self._braking = self.silent = True
        if dt > 0:
            self._advance(target, age_ns, dt)
        return self._place

    @property
    @abstractmethod
    def at_rest(self) -> bool:
        """Whether the stream stands still."""

    @abstractmethod
    def _rest(self) -> None:
        """Stand still."""

    @abstractmethod
    def _moves(self, target: TargetT) -> bool:
        """Whether stream or set-point move."""

    @abstractmethod
    def _advance(self, target: TargetT | None, age_ns: int, dt: float) -> None:
        """Go on for ``dt`` s."""


class UrFollower(Follower[TimedSetpoint, Pose]):
    """Follows set-points of the tool.

    Args:
        linear, angular: limits of the tool, m/s and m/s^2, rad/s and rad/s^2.
        silence_timeout_s, extrapolate_s: as :class:`Follower`.
    """

    def __init__(
        self, linear: FollowerLimits, angular: FollowerLimits, silence_timeout_s: float, extrapolate_s: float
    ) -> None:
        super().__init__(Pose(ZERO, (0.0, 0.0, 0.0, 1.0)), silence_timeout_s, extrapolate_s)
        self._linear, self._angular = linear, angular
        self._velocity: Vector = ZERO
        self._turn_rate: Vector = ZERO

    @property
    def at_rest(self) -> bool:
        """Whether the stream stands still."""
        return self._velocity == ZERO and self._turn_rate == ZERO

    def _rest(self) -> None:
        self._velocity = self._turn_rate = ZERO

    def _moves(self, target: TimedSetpoint) -> bool:
        linear = max(norm(self._velocity), norm(target.linear_velocity))
        angular = max(norm(self._turn_rate), norm(target.angular_velocity))
        return linear > REST_SPEED or angular > REST_TURN_RATE

    def _advance(self, target: TimedSetpoint | None, age_ns: int, dt: float) -> None:
        if self._braking or target is None:
            self._velocity = brake(self._velocity, self._linear.acceleration, dt)
            self._turn_rate = brake(self._turn_rate, self._angular.acceleration, dt)
        else:
            self._pursue(target, age_ns, dt)
        self._place = Pose(
            add(self._place.position, self._velocity, dt), turned(self._place.quaternion, times(self._turn_rate, dt))
        )

    def _pursue(self, target: TimedSetpoint, age_ns: int, dt: float) -> None:
        fresh = age_ns <= self._extrapolate_ns
        ahead = min(max(age_ns, 0), self._extrapolate_ns) / NANOSECONDS
        velocity = target.linear_velocity if fresh else ZERO
        turn_rate = target.angular_velocity if fresh else ZERO
        error = add(add(target.position, target.linear_velocity, ahead), self._place.position, -1.0)
        wanted = turned(target.quaternion, times(target.angular_velocity, ahead))
        turn = turn_between(self._place.quaternion, wanted)
        self._velocity = pursue(self._velocity, error, velocity, self._linear, TIME_CONSTANT_S, dt)
        self._turn_rate = pursue(self._turn_rate, turn, turn_rate, self._angular, TIME_CONSTANT_S, dt)


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
        return max(map(abs, (*self._velocity, *target.velocities))) > REST_JOINT_SPEED

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

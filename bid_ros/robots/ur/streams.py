"""The two streams of the UR's servo loop, of the tool's pose and of the joints, and the periods of their set-points."""

import math
from typing import Final, TypeAlias

import numpy as np

from bid_ros.control.follower import FollowerLimits
from bid_ros.robots.protocol import PeriodStatistics, TimedJoints, TimedSetpoint
from bid_ros.robots.ur.config import JOINTS, UrConfig
from bid_ros.robots.ur.follower import UrFollower, UrJointFollower
from bid_ros.robots.ur.robot import UrRobot
from bid_ros.robots.ur.status import UrReading, near, near_joints
from bid_ros.robots.ur.watch import UrWatch

Record: TypeAlias = TimedSetpoint | TimedJoints
WINDOW_S: Final = 60  # of periods that are kept


class ToolStream:
    """Streams the tool's pose by ``servoL``.

    Args:
        config: limits of the tool.
        robot: takes the stream.
        watch: compares the robot with it.

    Attributes:
        follower: makes the stream from set-points.
    """

    def __init__(self, config: UrConfig, robot: UrRobot, watch: UrWatch) -> None:
        self._robot, self._watch = robot, watch
        linear = FollowerLimits(config.max_speed, config.max_acceleration)
        angular = FollowerLimits(config.max_turn_rate, config.max_turn_acceleration)
        self.follower = UrFollower(linear, angular, config.silence_timeout_s, config.extrapolate_s)

    def stands(self, reading: UrReading) -> bool:
        """Whether the arm stands where it was sent to."""
        return near(reading.target_pose, reading.pose)

    def begin(self, reading: UrReading, now_ns: int) -> None:
        """Begin where the arm was sent to: it hangs a little below, so from the measured pose it would sink."""
        self.follower.start(reading.target_pose, now_ns)
        self._watch.begin(reading.target_pose)

    def accept(self, record: Record) -> None:
        """Take a set-point of the tool, and no other."""
        if isinstance(record, TimedSetpoint):
            self.follower.accept(record)

    def send(self, now_ns: int) -> bool:
        """Send where the tool should be now; return False if the robot refuses."""
        pose = self.follower.step(now_ns)
        taken = self._robot.servo(pose)
        self._watch.sent(pose)
        return taken


class JointStream:
    """Streams the joints by ``servoJ``; as :class:`ToolStream`."""

    def __init__(self, config: UrConfig, robot: UrRobot, watch: UrWatch) -> None:
        self._robot, self._watch = robot, watch
        speed, acceleration = (config.max_joint_speed,) * JOINTS, (config.max_joint_acceleration,) * JOINTS
        self.follower = UrJointFollower(speed, acceleration, config.silence_timeout_s, config.extrapolate_s)

    def stands(self, reading: UrReading) -> bool:
        """Whether the arm stands where it was sent to."""
        return near_joints(reading.target_joints, reading.joints)

    def begin(self, reading: UrReading, now_ns: int) -> None:
        """Begin where the joints were sent to."""
        self.follower.start(reading.target_joints, now_ns)
        self._watch.begin_joints(reading.target_joints)

    def accept(self, record: Record) -> None:
        """Take a set-point of the joints, and no other."""
        if isinstance(record, TimedJoints):
            self.follower.accept(record)

    def send(self, now_ns: int) -> bool:
        """Send where the joints should be now; return False if the robot refuses."""
        joints = self.follower.step(now_ns)
        taken = self._robot.servo_joints(joints)
        self._watch.sent_joints(joints)
        return taken


Stream: TypeAlias = ToolStream | JointStream


class Periods:
    """Keeps the periods of the last minute of following; a pause between two followings is none.

    Args:
        rate_hz: nominal rate.
    """

    def __init__(self, rate_hz: int) -> None:
        self._nominal_ms = 1000.0 / rate_hz
        self._periods_ns = np.zeros(WINDOW_S * rate_hz, dtype=np.int64)
        self._count = 0
        self._last_ns: int | None = None

    def sent(self, now_ns: int) -> None:
        """Note a set-point sent at ``now_ns`` of a steady clock."""
        if self._last_ns is not None:
            self._periods_ns[self._count % self._periods_ns.size] = now_ns - self._last_ns
            self._count += 1
        self._last_ns = now_ns

    def pause(self) -> None:
        """Note that following has ended."""
        self._last_ns = None

    def statistics(self) -> PeriodStatistics:
        """Return the statistics. Takes half a millisecond."""
        kept_ms = self._periods_ns[: self._count] / 1e6
        found = (math.nan,) * 3
        if kept_ms.size:
            found = np.percentile(kept_ms, (50, 99, 100), method="inverted_cdf").tolist()
        return PeriodStatistics(kept_ms.size, 0, self._nominal_ms, *found)

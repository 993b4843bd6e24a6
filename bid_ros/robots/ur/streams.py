"""The two streams of the UR's servo loop: of the tool's pose, and of the joints."""

from typing import TypeAlias

from bid_ros.control.follower import FollowerLimits
from bid_ros.robots.ur.config import JOINTS, UrConfig
from bid_ros.robots.ur.follower import TimedSetpoint, UrFollower
from bid_ros.robots.ur.joint_follower import TimedJoints, UrJointFollower
from bid_ros.robots.ur.robot import UrRobot
from bid_ros.robots.ur.status import UrReading, near, near_joints
from bid_ros.robots.ur.watch import UrWatch

Record: TypeAlias = TimedSetpoint | TimedJoints


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

"""Arms that are driven through ROS: joint targets for ros2_control, or poses and twists for a Cartesian controller."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.bus import Bus
from bid_ros.robots.driver import ArmDriver, check_joint_setpoint
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import JointFollower, SetpointFollower, check_setpoint
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.motion import MinimumJerkCourse, MotionExecutor, not_by_joints
from bid_ros.robots.ros.watched import WatchedRobot


class RosArm(ArmDriver):
    """A robot with a ROS 2 driver, as an :class:`bid_ros.robots.base.JointArm`.

    It has no thread but that of its gripper: the state is taken, and judged, where it is asked for. So a robot that
    falls silent is noticed by the next :meth:`state` or :meth:`command`.

    Args:
        config: configuration of the arm.
        bus: topics and actions.
    """

    def __init__(self, config: RosConfig, bus: Bus) -> None:
        super().__init__(config.address, len(config.joint_names))
        self._config, self._robot = config, WatchedRobot(config, bus)
        self._interrupted = False  # a joint motion is to end
        self._of_joints = False  # what it follows, while it does

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        gripper = self._config.gripper
        fingers, widest = (gripper.fingers, gripper.open_width) if gripper else ((), 0.0)
        return ArmInfo("ros", self._config.address, self._config.joint_names, fingers, widest)

    def connect(self) -> None:
        """Find the robot's topics, its URDF and its active controller, without moving.

        Raises:
            ArmError: one of them is not there in time, or does not fit the configuration.
        """
        with self._lifecycle:
            if self._robot.connection is not None:
                return
            try:
                self._robot.connect()
            except ArmError:
                self._robot.disconnect()
                raise
            self._robot.clear()

    def state(self) -> ArmState:
        """Return the newest state without waiting. Its stamp does not advance while the robot is silent.

        While :meth:`recover` connects anew, and after it failed, that is the last one with the fault.

        Raises:
            ArmError: not connected, and no state is known.
        """
        known = self._robot.known()
        if known is None:
            raise self._unconnected()
        return known

    def command(self, setpoint: Setpoint) -> None:
        """Pass the newest set-point on. Returns at once.

        A set-point that the arm cannot reach, or after which it could not come to rest, stops it and is a fault.

        Raises:
            ArmError: not in control, a fault is pending, a value is not finite, or the pose cannot be reached.
        """
        with self._robot.lock:
            follower = self._in_control(joints=False)
            check_setpoint(setpoint)
            self._pass_on(lambda: follower.command(setpoint))

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Pass the newest set-point of the joints on. Returns at once.

        One outside the limits, or after which the arm could not come to rest inside them, stops it and is a fault.

        Raises:
            ArmError: not in control of the joints, a fault is pending, it does not fit the joints, or is refused.
        """
        with self._robot.lock:
            follower = self._in_control(joints=True)
            check_joint_setpoint(setpoint, len(self._config.joint_names))
            if isinstance(follower, JointFollower):
                self._pass_on(lambda: follower.command_joints(setpoint))

    def stop(self) -> None:
        """Brake to rest and leave control, or end a joint motion early. Never raises; may be called twice."""
        robot = self._robot
        self._interrupted = robot.moving
        with robot.lock:
            begun, seconds = robot.following, robot.brake()
        if begun:
            robot.await_rest(seconds)
        elif robot.moving:
            with self._lifecycle:  # the motion's own thread brakes
                pass

    def recover(self) -> None:
        """Clear a fault once the robot's state, URDF and controller are there again.

        What the robot itself needs, such as releasing a protective stop, remains with the person at the robot.

        Raises:
            ArmError: the fault remains.
        """
        with self._lifecycle:
            self.stop()
            try:
                self._robot.mend()
            except ArmError as error:
                self._robot.fault = str(error)
                raise
            self._robot.clear()

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(n,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to tool.
            dynamics: share of the joints' limits; the jerk is ignored. Default is the configuration's.

        Raises:
            ArmError: the shape is wrong, a target is outside the limits, the arm is not driven with joint positions, is
                not connected, a fault is pending, or the motion failed or was stopped.
        """
        target = self._goal(positions)
        with self._lifecycle:
            self.stop()
            with self._robot.lock:
                reading, connection = self._robot.ready()
            if connection.motion is None or connection.limits is None:
                raise not_by_joints(self._config, "a joint motion")
            self._demand(connection.limits.outside(target))
            course = MinimumJerkCourse.between(
                reading.joints, target, connection.limits, dynamics or self._config.dynamics
            )
            self._interrupted, self._robot.moving = False, True
            try:
                self._run(course, connection.motion)
            finally:
                self._robot.moving = False
            self._settle(partial(self._missed, target, connection.limits))

    def close(self) -> None:
        """Stop, end the gripper's thread and the topics. May be called twice."""
        self.stop()
        with self._lifecycle:
            self._robot.disconnect()
            self._robot.forget()

    def _gripper(self) -> GripperThread | None:
        connection = self._robot.connection
        return None if connection is None else connection.hand

    def _follow(self, joints: bool) -> None:
        robot = self._robot
        with self._lifecycle, robot.lock:
            reading, connection = robot.ready()
            if joints and not isinstance(connection.follower, JointFollower):
                raise not_by_joints(self._config, "set-points of the joints")
            if not robot.following:
                connection.follower.begin(reading.joints)
                robot.following, self._of_joints = True, joints
            else:
                self._demand_kind(joints, self._of_joints)

    def _in_control(self, joints: bool) -> SetpointFollower:
        """Return what follows set-points of this kind; ArmError if nothing does. Called under the lock."""
        robot = self._robot
        robot.look()
        if robot.fault or not robot.following or robot.connection is None or self._of_joints is not joints:
            raise self._not_in_control(joints, robot.fault)
        return robot.connection.follower

    def _pass_on(self, command: Callable[[], None]) -> None:
        """Pass a set-point on; one that is refused stops the arm. Called under the lock."""
        try:
            command()
        except ArmError as error:
            self._robot.lose(str(error))
            raise

    def _run(self, course: MinimumJerkCourse, motion: MotionExecutor) -> None:
        """Go along a course; ArmError if it is stopped or the robot fails."""
        try:
            ended = motion.run(course, self._step)
        except ArmError:
            with self._robot.lock:
                motion.leave(ended=True)
            self._clear(motion)
            raise
        with self._robot.lock:
            seconds = motion.leave(ended)
        if not ended:
            robot = self._robot
            robot.await_rest(seconds)
            self._clear(motion)
            raise ArmError(robot.fault) if robot.fault else self._stopped_early()

    def _clear(self, motion: MotionExecutor) -> None:
        """End what is left of a motion. If that fails the arm may go on by itself, which is a fault."""
        try:
            motion.clear()
        except ArmError as error:
            self._robot.lose(str(error))

    def _step(self, action: Callable[[], None]) -> bool:
        """Do something for a joint motion, unless it must end; return whether it goes on."""
        with self._robot.lock:
            self._robot.look()
            goes_on = not self._robot.fault and not self._interrupted
            if goes_on:
                action()
            return goes_on

    def _missed(self, target: Array, limits: DriverLimits) -> float:
        """Return how far a joint is from its goal at most, rad. Raises ArmError if the robot fails."""
        with self._robot.lock:
            reading = self._robot.look()
        self._demand(self._robot.fault)
        return 0.0 if reading is None else float(np.abs(limits.way(reading.joints, target)).max())

"""Arms that are driven through ROS: joint targets for ros2_control, or poses and twists for a Cartesian controller."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.bus import Bus
from bid_ros.robots.gripper import request_width
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.course import ARRIVED_RAD, Course, settled, stream_course
from bid_ros.robots.ros.follower import Follower, JointFollower, check_joint_setpoint, check_setpoint
from bid_ros.robots.ros.joints import Reading
from bid_ros.robots.ros.lag import LagWatch
from bid_ros.robots.ros.limits import JointLimits
from bid_ros.robots.ros.link import RosLink
from bid_ros.robots.ros.motion import joint_goal, not_by_joints
from bid_ros.robots.ros.parts import Parts, connected

POLL_S: Final = 0.005
AT_REST: Final = 0.02  # rad/s
REST_S: Final = 1.0  # s beyond a stop's own time after which an arm that still moves is a fault


class RosArm:
    """A robot with a ROS 2 driver, as an :class:`bid_ros.robots.base.JointArm`.

    It has no thread but that of its gripper: the state is taken, and judged, where it is asked for. So a robot that
    falls silent is noticed by the next :meth:`state` or :meth:`command`.

    Args:
        config: configuration of the arm.
        bus: topics and actions.
    """

    def __init__(self, config: RosConfig, bus: Bus) -> None:
        self._config, self._bus = config, bus
        self._link = RosLink(config, bus)
        self._parts: Parts | None = None  # while it is connected
        self._kept: ArmState | None = None  # the newest state, for while the robot is connected anew
        self._following = self._moving = self._interrupted = False
        self._lag = LagWatch(config)
        self._of_joints = False  # what it follows, while it does
        self._fault = ""
        # `_watch` guards state, fault and commands, and is held for less than a ms. `_lifecycle` orders the blocking
        # calls; a stop need not wait for them.
        self._watch = threading.RLock()
        self._lifecycle = threading.RLock()

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
            if self._parts is not None:
                return
            try:
                self._connect()
            except ArmError:
                self._disconnect()
                raise
            self._fault = ""

    def state(self) -> ArmState:
        """Return the newest state without waiting. Its stamp does not advance while the robot is silent.

        While :meth:`recover` connects anew, and after it failed, that is the last one with the fault.

        Raises:
            ArmError: not connected, and no state is known.
        """
        with self._watch:
            known = self._known(self._look())
            if known is None:
                raise self._unconnected()
            return known

    def start(self) -> None:
        """Follow set-points of the tool from the present pose on.

        Raises:
            ArmError: not connected, a fault is pending, a joint is outside its limits, or the joints are followed.
        """
        self._follow(joints=False)

    def start_joints(self) -> None:
        """Follow set-points of the joints from the present posture on.

        Raises:
            ArmError: as :meth:`start`, or the arm is not driven with joint positions.
        """
        self._follow(joints=True)

    def command(self, setpoint: Setpoint) -> None:
        """Pass the newest set-point on. Returns at once.

        A set-point that the arm cannot reach, or after which it could not come to rest, stops it and is a fault.

        Raises:
            ArmError: not in control, a fault is pending, a value is not finite, or the pose cannot be reached.
        """
        with self._watch:
            follower = self._in_control(joints=False)
            check_setpoint(setpoint)
            self._pass_on(lambda: follower.command(setpoint))

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Pass the newest set-point of the joints on. Returns at once.

        One outside the limits, or after which the arm could not come to rest inside them, stops it and is a fault.

        Raises:
            ArmError: not in control of the joints, a fault is pending, it does not fit the joints, or is refused.
        """
        with self._watch:
            follower = self._in_control(joints=True)
            check_joint_setpoint(setpoint, len(self._config.joint_names))
            if isinstance(follower, JointFollower):
                self._pass_on(lambda: follower.command_joints(setpoint))

    def command_gripper(self, width: float) -> None:
        """Command the gripper to open or close. Returns at once.

        Raises:
            ArmError: not connected, no gripper, or ``width`` is not finite.
        """
        request_width(self._parts.hand if self._parts is not None else None, width, self._config.address)

    def stop(self) -> None:
        """Brake to rest and leave control, or end a joint motion early. Never raises; may be called twice."""
        self._interrupted = self._moving
        with self._watch:
            begun, seconds = self._following, self._brake()
        if begun:
            self._await_rest(seconds)
        elif self._moving:
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
                hand = None if self._parts is None else self._parts.hand
                if self._parts is None or (hand is not None and hand.fault):
                    self._disconnect()
                    self._connect()
                else:
                    self._link.wait()
            except ArmError as error:
                self._fault = str(error)
                raise
            with self._watch:
                self._fault = ""
                self._lag.forget()

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(n,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to tool.
            dynamics: share of the joints' limits; the jerk is ignored. Default is the configuration's.

        Raises:
            ArmError: the shape is wrong, a target is outside the limits, the arm is not driven with joint positions, is
                not connected, a fault is pending, or the motion failed or was stopped.
        """
        target = joint_goal(self._config, positions)
        with self._lifecycle:
            self.stop()
            with self._watch:
                reading, parts = self._ready()
            if not isinstance(parts.follower, JointFollower) or parts.limits is None:
                raise not_by_joints(self._config, "a joint motion")
            outside = parts.limits.outside(target)
            if outside:
                raise ArmError(outside)
            course = Course.between(reading.joints, target, parts.limits, dynamics or self._config.dynamics)
            self._interrupted, self._moving = False, True
            try:
                self._run(course, parts.follower)
            finally:
                self._moving = False
            self._settle(target, parts.limits)

    def close(self) -> None:
        """Stop, end the gripper's thread and the topics. May be called twice."""
        self.stop()
        with self._lifecycle:
            self._disconnect()
            with self._watch:
                self._kept, self._fault = None, ""

    def _follow(self, joints: bool) -> None:
        with self._lifecycle, self._watch:
            reading, parts = self._ready()
            if joints and not isinstance(parts.follower, JointFollower):
                raise not_by_joints(self._config, "set-points of the joints")
            if not self._following:
                parts.follower.begin(reading.joints)
                self._following, self._of_joints = True, joints
            elif self._of_joints is not joints:
                what = "joints" if self._of_joints else "tool"
                raise ArmError(f"robot at {self._config.address} follows set-points of the {what}; stop it first")

    def _in_control(self, joints: bool) -> Follower:
        """Return what follows set-points of this kind; ArmError if nothing does. Called under ``_watch``."""
        self._look()
        parts = self._parts
        if self._fault or not self._following or parts is None or self._of_joints is not joints:
            first = "start_joints" if joints else "start"
            raise ArmError(self._fault or f"robot at {self._config.address} is not in control; {first} first")
        return parts.follower

    def _pass_on(self, command: Callable[[], None]) -> None:
        """Pass a set-point on; one that is refused stops the arm. Called under ``_watch``."""
        try:
            command()
        except ArmError as error:
            self._lose(str(error))
            raise

    def _connect(self) -> None:
        made = connected(self._config, self._bus, self._link, self._lose)
        with self._watch:
            self._parts = made

    def _disconnect(self) -> None:
        """End the gripper's thread and the topics. Keep the last state and the fault."""
        with self._watch:
            self._known(self._look())
            parts, self._parts = self._parts, None
        if parts is not None and parts.hand is not None:
            parts.hand.stop()
        self._bus.close()

    def _look(self) -> Reading | None:
        """Take the newest state, and judge it. Called under ``_watch``."""
        if self._parts is None:
            return None
        reading = self._link.read()
        driven = self._parts.follower if self._following or self._moving else None
        problem = self._link.problem(reading) or self._lag.problem(driven, reading.joints)
        if problem:
            self._lose(problem)
        return reading

    def _known(self, reading: Reading | None) -> ArmState | None:
        """Keep and return the state of a reading; without one the last state. Called under ``_watch``."""
        if reading is not None and self._parts is not None:
            tool, hand = self._parts.tool.pose(reading), self._parts.hand
            self._kept = ArmState(
                stamp_ns=tool.stamp_ns,
                joint_positions=reading.joints,
                joint_velocities=reading.speeds,
                tool_position=tool.position,
                tool_quaternion=tool.quaternion,
                gripper_width=math.nan if hand is None else hand.width,
                gripper_busy=hand is not None and hand.busy,
                in_control=self._following,
                fault=self._fault,
            )
        elif self._kept is not None:
            self._kept = replace(self._kept, gripper_busy=False, in_control=False, fault=self._fault)
        return self._kept

    def _lose(self, reason: str) -> None:
        """Latch a fault and begin a stop."""
        with self._watch:
            self._brake()
            self._fault = self._fault or reason

    def _brake(self) -> float:
        """Leave control, begin a stop, and return the s that it takes. Called under ``_watch``."""
        following, self._following = self._following, False
        return self._parts.follower.brake() if following and self._parts is not None else 0.0

    def _await_rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds + REST_S
        while not self._fault:
            with self._watch:
                reading = self._look()
            if reading is None or float(np.abs(reading.speeds).max()) < AT_REST:
                return
            if time.monotonic() > end:
                self._lose(f"robot at {self._config.address} did not stop in time: look at it, then reset")
            time.sleep(POLL_S)

    def _ready(self) -> tuple[Reading, Parts]:
        reading, parts = self._look(), self._parts
        if reading is None or parts is None:
            raise self._unconnected()
        if self._fault:
            raise ArmError(f"{self._fault}; recover first")
        return reading, parts

    def _unconnected(self) -> ArmError:
        return ArmError(f"robot at {self._config.address} is not connected; connect first")

    def _run(self, course: Course, follower: JointFollower) -> None:
        """Stream a course; ArmError if it is stopped or the robot fails."""

        def follow(joints: Array, speeds: Array) -> bool:
            with self._watch:
                self._look()
                goes_on = not self._fault and not self._interrupted
                if goes_on:
                    follower.follow(joints, speeds)
                return goes_on

        ended = stream_course(course, follow)
        with self._watch:
            seconds = follower.brake()
        if not ended:
            self._await_rest(seconds)
            raise ArmError(self._fault or f"robot at {self._config.address} did not reach the goal: it was stopped")

    def _settle(self, target: Array, limits: JointLimits) -> None:
        def missed() -> float:
            with self._watch:
                reading = self._look()
            return 0.0 if self._fault or reading is None else float(np.abs(limits.way(reading.joints, target)).max())

        off = settled(missed)
        if self._fault:
            raise ArmError(self._fault)
        if off > ARRIVED_RAD:
            raise ArmError(f"robot at {self._config.address} ended {off:.2f} rad from the goal: look at what holds it")

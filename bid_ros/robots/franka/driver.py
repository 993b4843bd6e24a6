"""Franka arms over franky: a tracker of the tool or of the joints, fed with set-points and their velocities."""

import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import franky
import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.driver import ArmDriver
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.hand import MAX_WIDTH, FrankaHand
from bid_ros.robots.franka.link import FRANKY_ERRORS, POLL_S, FrankaReading, open_robot, read, sentence
from bid_ros.robots.franka.motion import JointTracking, ToolTracking, Tracking, recovered
from bid_ros.robots.gripper import GripperThread

JOINTS = 7
Result = TypeVar("Result")


class FrankaArm(ArmDriver):
    """A Franka Panda or FR3, or its twin, as a :class:`bid_ros.robots.base.JointArm`.

    A thread reads the state, because franky waits for the robot while nothing is controlled, and finds the faults
    that franky keeps to itself until the next motion. Between commands the arm stays in impedance control and keeps
    its pose; only :meth:`stop` leaves control.

    Args:
        config: configuration of the arm.
    """

    def __init__(self, config: FrankaConfig) -> None:
        super().__init__(config.address, JOINTS)
        self._config = config
        self._robot: franky.Robot | None = None
        self._tracker: Tracking | None = None
        self._reading: FrankaReading | None = None
        self._fault = ""
        self._moving = False
        self._interrupted = False
        # It keeps the reader from judging a motion that is being ended.
        self._watch = threading.Lock()
        self._end = threading.Event()
        self._reader: threading.Thread | None = None

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        prefix, gripper = self._config.joint_prefix, self._config.gripper
        joints = tuple(f"{prefix}_joint{i + 1}" for i in range(JOINTS))
        fingers = (f"{prefix}_finger_joint1", f"{prefix}_finger_joint2") if gripper else ()
        return ArmInfo("franka", self._address, joints, fingers, MAX_WIDTH if gripper else 0.0)

    def connect(self) -> None:
        """Connect robot and hand and configure them, without moving.

        Raises:
            ArmError: nothing answers in time, or the robot refuses the configuration.
        """
        with self._lifecycle:
            if self._robot is not None:
                return
            robot = open_robot(self._config)
            try:
                self._reading = read(robot)
                if self._config.gripper:
                    self._hand = self._connect_gripper()
            except FRANKY_ERRORS as error:
                raise ArmError(sentence(self._address, error)) from error
            self._robot, self._fault = robot, ""
            self._end.clear()
            self._reader = threading.Thread(target=self._read_on, args=(robot,), name="franka state", daemon=True)
            self._reader.start()

    def state(self) -> ArmState:
        """Return the newest state without waiting for the robot; at most 5 ms old while the robot answers.

        Raises:
            ArmError: not connected.
        """
        reading, hand = self._reading, self._hand
        if reading is None:
            raise self._unconnected()
        state, pose = reading.state, reading.state.O_T_EE
        return ArmState(
            stamp_ns=reading.stamp_ns,
            joint_positions=np.array(state.q),
            joint_velocities=np.array(state.dq),
            tool_position=np.array(pose.translation),
            tool_quaternion=np.array(pose.quaternion),
            gripper_width=math.nan if hand is None else hand.width,
            gripper_busy=hand is not None and hand.busy,
            in_control=self._tracker is not None,
            fault=self._fault,
        )

    def command(self, setpoint: Setpoint) -> None:
        """Hand the newest set-point to the control loop; returns at once.

        Raises:
            ArmError: not in control, a fault is pending, or a value is not finite.
        """
        tracker = self._tracker
        if self._fault or not isinstance(tracker, ToolTracking):
            raise self._not_in_control(False, self._fault)
        self._checked(lambda: tracker.send(setpoint))

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Hand the newest set-point of the joints to the control loop; returns at once.

        Raises:
            ArmError: not in control of the joints, a fault is pending, or the set-point is not seven finite joints.
        """
        tracker = self._tracker
        if self._fault or not isinstance(tracker, JointTracking):
            raise self._not_in_control(True, self._fault)
        self._checked(lambda: tracker.send(setpoint))

    def stop(self) -> None:
        """Damp the arm to rest and leave control, or end a joint motion early. Never raises; may be called twice."""
        robot = self._robot
        if robot is None:
            return
        if self._moving:
            self._interrupted = True
            self._attempt(lambda: robot.move(franky.JointStopMotion(), asynchronous=True))
        with self._lifecycle:
            with self._watch:
                tracker, self._tracker = self._tracker, None
            if tracker is not None:
                self._attempt(tracker.stop)

    def recover(self) -> None:
        """Clear a fault by the robot's error recovery, or by a new connection where the old one is lost.

        Raises:
            ArmError: the fault remains.
        """
        with self._lifecycle:
            self.stop()
            if self._robot is not None and recovered(self._robot):
                self._fault = ""
                return
            self._disconnect()
            try:
                self.connect()
            except ArmError as error:
                self._fault = str(error)
                raise
            if self._robot is None or not recovered(self._robot):
                self._fault = f"robot at {self._address} cannot recover: check the errors that Desk shows"
                raise ArmError(self._fault)

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(7,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to flange.
            dynamics: share of the robot's limits; default is the configuration's.

        Raises:
            ArmError: wrong shape, not connected, a fault is pending, or the motion failed or was stopped.
        """
        target = self._goal(positions)
        share = dynamics or self._config.dynamics
        with self._lifecycle:
            robot = self._ready()
            self.stop()
            robot.relative_dynamics_factor = franky.RelativeDynamicsFactor(
                share.velocity, share.acceleration, share.jerk
            )
            self._interrupted, self._moving = False, True
            try:
                robot.move(franky.JointMotion(franky.JointState(target)))
            except FRANKY_ERRORS as error:
                self._fail(sentence(self._address, error))
                raise ArmError(self._fault) from error
            finally:
                self._moving = False
            if self._interrupted:
                raise self._stopped_early()
            self._settle(lambda: float(np.abs(np.asarray(robot.state.q) - target).max()))

    def close(self) -> None:
        """Stop, end the threads and disconnect. May be called twice."""
        with self._lifecycle:
            self._disconnect()
            self._reading = None

    def _follow(self, joints: bool) -> None:
        kind: type[Tracking] = JointTracking if joints else ToolTracking
        with self._lifecycle:
            robot = self._ready()
            if self._tracker is not None:
                self._demand_kind(joints, isinstance(self._tracker, JointTracking))
                return
            tracker = self._checked(lambda: kind(robot, self._config, self.state))
            with self._watch:
                self._tracker = tracker

    def _disconnect(self) -> None:
        """Stop and end the threads, keeping the last state and the fault for whoever still asks."""
        self.stop()
        self._end.set()
        if self._hand is not None:
            self._hand.stop()
        if self._reader is not None:
            self._reader.join(2.0)
        self._robot = self._hand = self._reader = None

    def _ready(self) -> franky.Robot:
        if self._robot is None:
            raise self._unconnected()
        self._demand_health(self._fault)
        return self._robot

    def _connect_gripper(self) -> GripperThread:
        hand = FrankaHand(self._config)
        thread = GripperThread(
            hand,
            self._config.gripper_thresholds,
            FRANKY_ERRORS,
            lambda error: self._fail(f"hand of the {sentence(self._address, error)}"),
        )
        thread.start()
        return thread

    def _checked(self, action: Callable[[], Result]) -> Result:
        """Return what an action returns; raises ArmError for what franky raises."""
        try:
            return action()
        except FRANKY_ERRORS as error:
            raise ArmError(sentence(self._address, error)) from error

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except FRANKY_ERRORS as error:
            self._fail(sentence(self._address, error))

    def _fail(self, reason: str) -> None:
        if not self._fault:
            self._fault = reason

    def _read_on(self, robot: franky.Robot) -> None:
        while not self._end.is_set():
            time.sleep(POLL_S)  # cheaper than to wait for the event, 250 times a second
            try:
                reading = read(robot)
            except FRANKY_ERRORS as error:
                self._lost(sentence(self._address, error))
                continue
            last = self._reading
            if last is None or reading.robot_ms != last.robot_ms:
                self._reading = reading
            elif reading.steady_ns - last.steady_ns > self._config.state_timeout_s * 1e9:
                silence = (reading.steady_ns - last.steady_ns) / 1e9
                self._lost(f"robot at {self._address} has been silent for {silence:.1f} s: check cable and power")
            self._check_motion(robot)

    def _check_motion(self, robot: franky.Robot) -> None:
        with self._watch:
            if self._tracker is None:
                return
            reason = f"robot at {self._address} left control by itself: check the user stop, then reset"
            try:
                if not robot.poll_motion():
                    return
            except FRANKY_ERRORS as error:
                reason = sentence(self._address, error)
            self._tracker = None
            self._fail(reason)

    def _lost(self, reason: str) -> None:
        with self._watch:
            self._tracker = None
            self._fail(reason)

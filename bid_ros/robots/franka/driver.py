"""Franka arms over franky: a tracker of the tool or of the joints, fed with set-points and their velocities."""

import math
import threading
import time
from collections.abc import Callable

import franky
import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.hand import MAX_WIDTH, FrankaHand
from bid_ros.robots.franka.link import FRANKY_ERRORS, open_robot, sentence
from bid_ros.robots.franka.motion import recovered, settle
from bid_ros.robots.franka.reading import POLL_S, Reading, read
from bid_ros.robots.franka.tracking import JointTracking, ToolTracking, Tracking
from bid_ros.robots.gripper import GripperThread, request_width

JOINTS = 7


class FrankaArm:
    """A Franka Panda or FR3, or its twin, as a :class:`bid_ros.robots.base.JointArm`.

    A thread reads the state, because franky waits for the robot while nothing is controlled, and finds the faults
    that franky keeps to itself until the next motion. Between commands the arm stays in impedance control and keeps
    its pose; only :meth:`stop` leaves control.

    Args:
        config: configuration of the arm.
    """

    def __init__(self, config: FrankaConfig) -> None:
        self._config = config
        self._robot: franky.Robot | None = None
        self._gripper: GripperThread | None = None
        self._tracker: Tracking | None = None
        self._reading: Reading | None = None
        self._fault = ""
        self._moving = False
        self._interrupted = False
        # `_lifecycle` orders the blocking calls; `_watch` keeps the reader from judging a motion that is being ended.
        self._lifecycle = threading.RLock()
        self._watch = threading.Lock()
        self._end = threading.Event()
        self._reader: threading.Thread | None = None

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        prefix, gripper = self._config.joint_prefix, self._config.gripper
        joints = tuple(f"{prefix}_joint{i + 1}" for i in range(JOINTS))
        fingers = (f"{prefix}_finger_joint1", f"{prefix}_finger_joint2") if gripper else ()
        return ArmInfo("franka", self._config.address, joints, fingers, MAX_WIDTH if gripper else 0.0)

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
                    self._gripper = self._connect_gripper()
            except FRANKY_ERRORS as error:
                raise ArmError(sentence(self._config.address, error)) from error
            self._robot, self._fault = robot, ""
            self._end.clear()
            self._reader = threading.Thread(target=self._read_on, args=(robot,), name="franka state", daemon=True)
            self._reader.start()

    def state(self) -> ArmState:
        """Return the newest state without waiting for the robot; at most 5 ms old while the robot answers.

        Raises:
            ArmError: not connected.
        """
        reading, gripper = self._reading, self._gripper
        if reading is None:
            raise ArmError(f"robot at {self._config.address} is not connected; connect first")
        state, pose = reading.state, reading.state.O_T_EE
        return ArmState(
            stamp_ns=reading.stamp_ns,
            joint_positions=np.array(state.q),
            joint_velocities=np.array(state.dq),
            tool_position=np.array(pose.translation),
            tool_quaternion=np.array(pose.quaternion),
            gripper_width=math.nan if gripper is None else gripper.width,
            gripper_busy=gripper is not None and gripper.busy,
            in_control=self._tracker is not None,
            fault=self._fault,
        )

    def start(self) -> None:
        """Enter Cartesian impedance control at the present pose.

        Raises:
            ArmError: not connected, a fault is pending, the joints are controlled, or the robot refuses.
        """
        self._follow(ToolTracking)

    def start_joints(self) -> None:
        """Enter joint impedance control at the present posture.

        Raises:
            ArmError: not connected, a fault is pending, the tool is controlled, or the robot refuses.
        """
        self._follow(JointTracking)

    def command(self, setpoint: Setpoint) -> None:
        """Hand the newest set-point to the control loop; returns at once.

        Raises:
            ArmError: not in control, a fault is pending, or a value is not finite.
        """
        tracker = self._tracker
        if self._fault or not isinstance(tracker, ToolTracking):
            raise ArmError(self._fault or f"robot at {self._config.address} is not in control; start first")
        try:
            tracker.send(setpoint)
        except FRANKY_ERRORS as error:
            raise ArmError(sentence(self._config.address, error)) from error

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Hand the newest set-point of the joints to the control loop; returns at once.

        Raises:
            ArmError: not in control of the joints, a fault is pending, or the set-point is not seven finite joints.
        """
        tracker = self._tracker
        if self._fault or not isinstance(tracker, JointTracking):
            raise ArmError(self._fault or f"robot at {self._config.address} is not in control; start_joints first")
        try:
            tracker.send(setpoint)
        except FRANKY_ERRORS as error:
            raise ArmError(sentence(self._config.address, error)) from error

    def command_gripper(self, width: float) -> None:
        """Ask the hand to open or close; returns at once.

        Raises:
            ArmError: not connected, no gripper, or ``width`` is not finite.
        """
        request_width(self._gripper, width, self._config.address)

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
                self._fault = f"robot at {self._config.address} cannot recover: check the errors that Desk shows"
                raise ArmError(self._fault)

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(7,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to flange.
            dynamics: share of the robot's limits; default is the configuration's.

        Raises:
            ArmError: wrong shape, not connected, a fault is pending, or the motion failed or was stopped.
        """
        target = np.asarray(positions, dtype=np.float64)
        if target.shape != (JOINTS,) or not np.isfinite(target).all():
            raise ArmError(f"joint positions are {target.tolist()}; valid is {JOINTS} finite numbers in rad")
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
                self._fail(sentence(self._config.address, error))
                raise ArmError(self._fault) from error
            finally:
                self._moving = False
            if self._interrupted:
                raise ArmError(f"robot at {self._config.address} did not reach the goal: it was stopped")
            settle(robot, target, self._config.address)

    def close(self) -> None:
        """Stop, end the threads and disconnect. May be called twice."""
        with self._lifecycle:
            self._disconnect()
            self._reading = None

    def _follow(self, kind: type[Tracking]) -> None:
        with self._lifecycle:
            robot = self._ready()
            if self._tracker is not None:
                if not isinstance(self._tracker, kind):
                    raise ArmError(f"robot at {self._config.address} follows {self._tracker.what}; stop it first")
                return
            try:
                tracker = kind(robot, self._config, self.state)
            except FRANKY_ERRORS as error:
                raise ArmError(sentence(self._config.address, error)) from error
            with self._watch:
                self._tracker = tracker

    def _disconnect(self) -> None:
        """Stop and end the threads, keeping the last state and the fault for whoever still asks."""
        self.stop()
        self._end.set()
        if self._gripper is not None:
            self._gripper.stop()
        if self._reader is not None:
            self._reader.join(2.0)
        self._robot = self._gripper = self._reader = None

    def _ready(self) -> franky.Robot:
        if self._robot is None:
            raise ArmError(f"robot at {self._config.address} is not connected; connect first")
        if self._fault:
            raise ArmError(f"{self._fault}; recover first")
        return self._robot

    def _connect_gripper(self) -> GripperThread:
        hand = FrankaHand(self._config)
        thread = GripperThread(
            hand,
            self._config.gripper_thresholds,
            FRANKY_ERRORS,
            lambda error: self._fail(f"hand of the {sentence(self._config.address, error)}"),
        )
        thread.start()
        return thread

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except FRANKY_ERRORS as error:
            self._fail(sentence(self._config.address, error))

    def _fail(self, reason: str) -> None:
        if not self._fault:
            self._fault = reason

    def _read_on(self, robot: franky.Robot) -> None:
        while not self._end.is_set():
            time.sleep(POLL_S)  # cheaper than to wait for the event, 250 times a second
            try:
                reading = read(robot)
            except FRANKY_ERRORS as error:
                self._lost(sentence(self._config.address, error))
                continue
            last = self._reading
            if last is None or reading.robot_ms != last.robot_ms:
                self._reading = reading
            elif reading.steady_ns - last.steady_ns > self._config.state_timeout_s * 1e9:
                silence = (reading.steady_ns - last.steady_ns) / 1e9
                self._lost(
                    f"robot at {self._config.address} has been silent for {silence:.1f} s: check cable and power"
                )
            self._check_motion(robot)

    def _check_motion(self, robot: franky.Robot) -> None:
        with self._watch:
            if self._tracker is None:
                return
            reason = f"robot at {self._config.address} left control by itself: check the user stop, then reset"
            try:
                if not robot.poll_motion():
                    return
            except FRANKY_ERRORS as error:
                reason = sentence(self._config.address, error)
            self._tracker = None
            self._fail(reason)

    def _lost(self, reason: str) -> None:
        with self._watch:
            self._tracker = None
            self._fail(reason)

"""One open connection to a Franka robot, in the process that owns franky: reads and commands it, and never waits."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

import franky
import numpy as np

from bid_ros.control.spatial import Pose
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.base import Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS, arm_error, sentence
from bid_ros.robots.franka.motion import JointTracking, ToolTracking, Tracking, recovered
from bid_ros.robots.franka.reading import FrankaReading
from bid_ros.robots.protocol import TimedJoints, TimedSetpoint

# Between two readings; in control one takes 4 us. As the loop looks.
POLL_S: Final = 0.002
TWIN_POLL_S: Final = 0.004
# Modes in which the robot brakes by itself, whatever was commanded.
OWN_MODES: Final = (franky.RobotMode.Reflex, franky.RobotMode.UserStopped, franky.RobotMode.AutomaticErrorRecovery)


def reading_of(state: franky.RobotState, tracker: Tracking | None = None) -> FrankaReading:
    """Return what is needed of a state that was read just now, and what the tracker had sent for it."""
    robot_ms = int(state.time.to_msec())
    return FrankaReading(
        time.time_ns(),
        time.monotonic_ns(),
        time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
        robot_ms,
        tuple(state.q.tolist()),
        tuple(state.dq.tolist()),
        _pose(state.O_T_EE),
        tuple(np.asarray(state.tau_J_d).tolist()),
        float(state.control_command_success_rate),
        None if tracker is None else tracker.sent.told(robot_ms),
        state.robot_mode not in OWN_MODES,
    )


def _pose(pose: franky.Affine) -> Pose:
    x, y, z = np.asarray(pose.translation).tolist()
    u, v, w, scalar = np.asarray(pose.quaternion).tolist()
    return Pose((x, y, z), (u, v, w, scalar))


def open_robot(config: FrankaConfig) -> franky.Robot:
    """Connect to the robot and configure it, without moving it.

    libfranka waits a minute for an address that does not answer, so the caller needs a time limit.

    Raises:
        ArmError: the robot refuses.
    """
    try:
        return _configured(config)
    except FRANKY_ERRORS as error:
        raise arm_error(config.address, error) from error


def _configured(config: FrankaConfig) -> franky.Robot:
    realtime = franky.RealtimeConfig.Ignore if config.twin else franky.RealtimeConfig.Enforce
    robot = franky.Robot(config.address, realtime_config=realtime)
    robot.relative_dynamics_factor = _factor(config.dynamics)
    robot.set_collision_behavior(config.torque_threshold, config.force_threshold)
    set_load(robot, config)
    tool = np.eye(4)
    tool[:3, :3] = matrix_from_quaternion(config.tool_quaternion)
    tool[:3, 3] = config.tool_offset
    robot.set_ee(tool.ravel(order="F").tolist())
    return robot


def set_load(robot: franky.Robot, config: FrankaConfig) -> None:
    """Tell a robot what it carries beside its hand. Raises as franky."""
    inertia = np.reshape(config.payload_inertia, (3, 3)).ravel(order="F").tolist()
    robot.set_load(config.payload_mass, list(config.payload_center), inertia)


def _factor(share: Dynamics) -> franky.RelativeDynamicsFactor:
    return franky.RelativeDynamicsFactor(share.velocity, share.acceleration, share.jerk)


class FrankaRobot:
    """A Franka that one thread reads. What waits for it runs in a thread of its own, whose result is awaited by looks.

    franky holds a lock while it waits for a state of a robot that is not controlled. So only :meth:`send` may be called
    from the loop, and only while the robot follows.

    Args:
        config: configuration of the arm.
        robot: open robot.

    Attributes:
        tool: pose of the tool in the robot's flange.
    """

    def __init__(self, config: FrankaConfig, robot: franky.Robot) -> None:
        self._config, self._robot = config, robot
        self._tracker: Tracking | None = None
        # It keeps the reader from judging a motion that is being ended.
        self._judging = threading.Lock()
        self._trouble = ""
        self._newest = self._read()
        self.tool = _pose(robot.state.F_T_EE)
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read_on, name="state", daemon=True)
        self._reader.start()

    def newest(self) -> FrankaReading:
        """Return the newest state that libfranka has."""
        return self._newest

    def trouble(self) -> str:
        """Return one sentence if franky found that the robot does not follow or answer any more, else an empty text."""
        return self._trouble

    def follow(self, joints: bool) -> Future[str]:
        """Begin to follow set-points of the joints, or of the tool, from the present pose on.

        Returns:
            One sentence why not, or an empty text, when it is known.
        """
        kind: type[Tracking] = JointTracking if joints else ToolTracking

        def begin() -> None:
            tracker = kind(self._robot, self._config, self._measured)
            with self._judging:
                self._tracker = tracker

        return self._attempt(begin)

    def send(self, setpoint: TimedSetpoint | TimedJoints) -> None:
        """Hand a set-point to franky's control loop, if that follows set-points of its kind. Returns at once.

        Raises:
            ArmError: franky refuses it.
        """
        tracker = self._tracker
        try:
            match tracker, setpoint:
                case ToolTracking(), TimedSetpoint():
                    tracker.send(setpoint)
                case JointTracking(), TimedJoints():
                    tracker.send(setpoint)
        except FRANKY_ERRORS as error:
            raise ArmError(sentence(self._config.address, error)) from error

    def stop(self) -> Future[str]:
        """Damp the arm to rest and leave control. The result comes when it is at rest, as for :meth:`follow`."""
        with self._judging:
            tracker, self._tracker = self._tracker, None

        def halt() -> None:
            if tracker is not None:
                tracker.stop()

        return self._attempt(halt)

    def move(self, joints: tuple[float, ...], dynamics: Dynamics) -> Future[str]:
        """Move to ``(7,)`` rad with a share of the robot's limits. The result comes at its end, as for `follow`."""

        def go() -> None:
            self._robot.relative_dynamics_factor = _factor(dynamics)
            self._robot.move(franky.JointMotion(franky.JointState(np.array(joints))))

        return self._attempt(go)

    def end_move(self) -> None:
        """Begin to stop a joint motion."""
        self._attempt(lambda: self._robot.move(franky.JointStopMotion(), asynchronous=True))

    def recover(self) -> Future[str]:
        """Clear the robot's errors by its own recovery; the result comes after some seconds, as for :meth:`follow`."""

        def clear() -> None:
            if not recovered(self._robot):
                raise ArmError(f"robot at {self._config.address} cannot recover: check the errors that Desk shows")
            self._trouble = ""

        return self._attempt(clear)

    def close(self) -> None:
        """End the reader and close the connection, out of control. Nothing else may be called afterwards."""
        self._ended.set()
        self._reader.join()
        self._tracker = None
        del self._robot

    def _attempt(self, action: Callable[[], Any]) -> Future[str]:
        """Run what may wait for the robot in a thread of its own."""
        result: Future[str] = Future()

        def run() -> None:
            try:
                action()
            except ArmError as error:
                result.set_result(str(error))
            except FRANKY_ERRORS as error:
                result.set_result(sentence(self._config.address, error))
            else:
                result.set_result("")

        threading.Thread(target=run, name="franky", daemon=True).start()
        return result

    def _measured(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self._newest.joints, self._newest.joint_speeds

    def _read(self) -> FrankaReading:
        return reading_of(self._robot.state, self._tracker)

    def _read_on(self) -> None:
        poll_s = TWIN_POLL_S if self._config.twin else POLL_S
        while not self._ended.is_set():
            time.sleep(poll_s)  # cheaper than to wait for the event, 500 times a second
            try:
                self._newest = self._read()
            except FRANKY_ERRORS as error:
                self._lose(sentence(self._config.address, error))
            else:
                self._judge_motion()

    def _judge_motion(self) -> None:
        """Find what franky keeps to itself until the next motion: that control has ended, and why."""
        with self._judging:
            if self._tracker is None:
                return
            reason = f"robot at {self._config.address} left control by itself: check the user stop, then reset"
            try:
                if not self._robot.poll_motion():
                    return
            except FRANKY_ERRORS as error:
                reason = sentence(self._config.address, error)
            self._tracker = None
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        self._trouble = self._trouble or reason

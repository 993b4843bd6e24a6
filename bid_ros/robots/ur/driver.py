"""UR arms over ur_rtde: a process of its own turns set-points into a smooth stream at the controller's rate."""

import importlib.util
import math
import threading
import time
from typing import Final

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.driver import ArmDriver
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.robotiq.driver import RobotiqGripper
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.ur.config import JOINT_NAMES, JOINTS, UrConfig
from bid_ros.robots.ur.link import UrLink
from bid_ros.robots.ur.protocol import Mode, MotionOutcome, PeriodStatistics, UrRequest, UrState
from bid_ros.robots.ur.reach import Reach, timed, timed_joints

if importlib.util.find_spec("rtde_control") is None:
    # Only the process imports it, but a missing library must be found before the robot starts.
    raise ImportError("No module named 'rtde_control'")

FULL_SPEED: Final = 3.14  # rad/s, what the joints of a UR5 reach and ur_rtde lets pass
FULL_ACCELERATION: Final = 10.0  # rad/s^2; UR names no limit of its own
STOP_S: Final = 2.0
POLL_S: Final = 0.002
CLOSE_POLL_S: Final = 0.1


class UrArm(ArmDriver):
    """A UR5 (CB3) or UR5e (e-Series), or its twin, as a :class:`bid_ros.robots.base.JointArm`.

    A process of its own (:mod:`bid_ros.robots.ur.process`) has the connection and runs the servo loop. This object
    shares memory with it, so :meth:`state` and :meth:`command` never wait. Between set-points the last one is
    extrapolated with its velocity. Silence while the arm moves stops it and is a fault. At rest it holds its pose.

    Args:
        config: configuration of the arm.
    """

    def __init__(self, config: UrConfig) -> None:
        super().__init__(config.address, JOINTS)
        self._config = config
        self._reach = Reach(config)
        self._link: UrLink | None = None
        self._device: RobotiqGripper | None = None
        self._last: UrState | None = None
        self._fault = ""
        self._of_joints = False  # what it follows, while it does
        # A fault is read and latched, or cleared, under this lock. Nothing waits while holding it.
        self._latch = threading.RLock()

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        prefix, gripper = self._config.joint_prefix, self._config.gripper is not None
        joints = tuple(f"{prefix}{name}_joint" for name in JOINT_NAMES)
        fingers = (f"{prefix}left_finger_joint", f"{prefix}right_finger_joint") if gripper else ()
        return ArmInfo("ur", self._address, joints, fingers, MAX_OPENING if gripper else 0.0)

    def connect(self) -> None:
        """Connect robot and gripper and start our program on the controller, without moving either.

        Raises:
            ArmError: nothing answers in time, or the robot has an unknown version, is in local mode, is not ready, or
                runs another program; or a recovery failed, and then only another recovery connects.
        """
        with self._lifecycle:
            if self._link is None:
                self._demand_health(self._fault)
                self._connect(release=False)

    def state(self) -> ArmState:
        """Return the newest state without waiting. Its stamp does not advance while the robot is silent.

        Raises:
            ArmError: not connected.
        """
        state, hand = self._look(), self._hand
        if state is None:
            raise self._unconnected()
        return ArmState(
            stamp_ns=state.stamp_ns,
            joint_positions=np.array(state.joints),
            joint_velocities=np.array(state.joint_speeds),
            tool_position=np.array(state.position),
            tool_quaternion=np.array(state.quaternion),
            gripper_width=math.nan if hand is None else hand.width,
            gripper_busy=hand is not None and hand.busy,
            in_control=state.mode is Mode.FOLLOWING and not self._fault,
            fault=self._fault,
        )

    def statistics(self) -> PeriodStatistics:
        """Return the periods of the set-points over the last minute of following. Waits up to 1 s.

        Raises:
            ArmError: not connected, or the process does not answer.
        """
        return self._connected().statistics()

    def command(self, setpoint: Setpoint) -> None:
        """Pass the newest set-point to the servo loop. Returns at once.

        A set-point that the arm cannot reach, or after which it could not come to rest, stops it and is a fault.

        Raises:
            ArmError: not in control, a fault is pending, a value is not finite, or the pose cannot be reached.
        """
        link, state = self._following(joints=False)
        given = timed(setpoint, time.monotonic_ns())
        self._demand_reach(link, self._reach.refusal(given, state.joints))
        link.send(given)

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Pass the newest set-point of the joints to the servo loop. Returns at once.

        One outside the limits, or after which the arm could not come to rest inside them, stops it and is a fault.

        Raises:
            ArmError: not in control of the joints, a fault is pending, it is not six finite joints, or is refused.
        """
        link, _ = self._following(joints=True)
        given = timed_joints(setpoint, time.monotonic_ns())
        self._demand_reach(link, self._reach.joint_refusal(given))
        link.send(given)

    def stop(self) -> None:
        """Brake to rest and leave control, or end a joint motion early. Never raises; may be called twice."""
        link = self._link
        if link is None or link.trouble(link.state()) or link.ask(UrRequest.STOP):
            return
        end = time.monotonic() + STOP_S
        while link.state().mode is not Mode.IDLE and not link.trouble(link.state()):
            if time.monotonic() > end:
                # The robot did not stop by command: its watchdog stops it without us.
                link.kill()
                self._fail(f"robot at {self._address} did not stop within {STOP_S:g} s: look at it, then reset")
                return
            time.sleep(POLL_S)

    def recover(self) -> None:
        """Clear a fault. If the robot itself has one or is lost, release it and connect again.

        It releases a protective stop and ends a running program. Power, brakes, emergency stops and remote control
        remain with the person at the robot.

        Raises:
            ArmError: the fault remains.
        """
        with self._lifecycle:
            self.stop()
            link, hand = self._link, self._hand
            if link is not None and not link.trouble(link.state()) and not link.ask(UrRequest.CLEAR):
                with self._latch:
                    self._fault = "" if hand is None else hand.fault
                if not self._fault:
                    return
            self._disconnect()
            try:
                self._connect(release=True)
            except ArmError as error:
                self._fault = str(error)
                raise

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(6,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to wrist 3.
            dynamics: share of 3.14 rad/s and 10 rad/s^2; the jerk is the controller's. Default is the configuration's.

        Raises:
            ArmError: wrong shape, outside the limits, not connected, a fault is pending, or the motion failed or ended.
        """
        target = self._goal(positions)
        self._demand(self._reach.outside(target.tolist()))
        share = dynamics or self._config.dynamics
        speed, acceleration = share.velocity * FULL_SPEED, share.acceleration * FULL_ACCELERATION
        with self._lifecycle:
            link = self._ready()
            self.stop()
            self._demand(link.ask(UrRequest.MOVE, tuple(target.tolist()), speed, acceleration))
            self._await_motion(link, target)

    def close(self) -> None:
        """Stop, end our program on the robot, disconnect and end the process. May be called twice.

        Takes up to 8 s if nothing answers. A joint motion is ended early. It waits for a connection in progress.
        """
        self.stop()
        while not self._lifecycle.acquire(timeout=CLOSE_POLL_S):
            self.stop()  # another thread's joint motion began only now
        try:
            self._disconnect()
            with self._latch:
                self._last, self._fault = None, ""
        finally:
            self._lifecycle.release()

    def _follow(self, joints: bool) -> None:
        with self._lifecycle:
            link = self._ready()
            if link.state().mode is not Mode.FOLLOWING:
                self._of_joints = joints
                self._demand(link.ask(UrRequest.START, joints))
            else:
                self._demand_kind(joints, self._of_joints)

    def _following(self, joints: bool) -> tuple[UrLink, UrState]:
        """Return what follows set-points of this kind; raises ArmError if nothing does."""
        state, link = self._look(), self._link
        follows = self._of_joints is joints and state is not None and state.mode is Mode.FOLLOWING
        if self._fault or state is None or link is None or not follows:
            raise self._not_in_control(joints, self._fault)
        return link, state

    def _demand_reach(self, link: UrLink, refusal: str) -> None:
        """Stop the arm if it cannot follow a set-point."""
        if refusal:
            self._fail(refusal)
            link.brake()
            raise ArmError(refusal)

    def _connect(self, release: bool) -> None:
        link = UrLink(self._config, release)
        try:
            hand = self._connect_gripper()
        except ArmError:
            link.close()
            raise
        with self._latch:
            self._link, self._hand = link, hand
            self._fault = "" if hand is None else hand.fault

    def _connect_gripper(self) -> GripperThread | None:
        if self._config.gripper is None:
            return None
        self._device = device = RobotiqGripper(self._config.gripper, self._address)
        hand = GripperThread(device, self._config.gripper_thresholds, (ArmError,), lambda error: self._fail(str(error)))
        try:
            hand.start()
        except ArmError:
            device.close()
            raise
        return hand

    def _disconnect(self) -> None:
        """End the process and the gripper's thread. Keep the last state and the fault."""
        with self._latch:
            self._look()
            link, self._link = self._link, None
        if link is not None:
            link.close()
        hand, self._hand = self._hand, None
        if hand is not None and self._device is not None:
            hand.stop()
            self._device.close()

    def _look(self) -> UrState | None:
        """Return the newest state, and latch its fault."""
        with self._latch:
            if self._link is not None:
                self._last = state = self._link.state()
                reason = state.fault or self._link.trouble(state)
                if reason:
                    self._fail(reason)
            return self._last

    def _connected(self) -> UrLink:
        link = self._link
        if link is None:
            raise self._unconnected()
        return link

    def _ready(self) -> UrLink:
        link = self._connected()
        self._look()
        self._demand_health(self._fault)
        return link

    def _await_motion(self, link: UrLink, target: Array) -> None:
        while (state := link.state()).mode is Mode.MOVING and not link.trouble(state):
            time.sleep(POLL_S)
        self._look()
        if self._fault:
            raise ArmError(self._fault)
        if state.outcome is MotionOutcome.STOPPED:
            raise self._stopped_early()
        if state.outcome is not MotionOutcome.ARRIVED:
            missed = float(np.abs(np.array(state.joints) - target).max())
            raise self._error(f"ended {missed:.2f} rad from the goal: look at what holds it")

    def _fail(self, reason: str) -> None:
        with self._latch:
            self._fault = self._fault or reason

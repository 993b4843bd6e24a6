"""An arm whose robot a process of its own drives: what is alike for all of them."""

import math
import threading
import time
from abc import abstractmethod
from typing import Final

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.margins import Margins
from bid_ros.robots.base import ArmState, Array, Dynamics
from bid_ros.robots.driver import ArmDriver
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.link import ANSWER_S, POLL_S, DriverLink
from bid_ros.robots.protocol import (
    DriverRequest,
    DriverState,
    Mode,
    MotionOutcome,
    PeriodStatistics,
    TimedJoints,
    TimedSetpoint,
    timed,
    timed_joints,
)

STOP_S: Final = 3.0  # a stop that something keeps from its end ends after 2 s by itself
CLOSE_POLL_S: Final = 0.1


class ProcessArm(ArmDriver):
    """A :class:`bid_ros.robots.base.JointArm` that shares memory with the process that drives its robot.

    So :meth:`state` and :meth:`command` never wait. Silence of the set-points while the arm moves stops it and is a
    fault. At rest it holds its pose.

    Args:
        address: of the robot.
        joints: number of its joints.
        clear_s: longest time in s for the process to clear a fault.
    """

    def __init__(self, address: str, joints: int, clear_s: float = ANSWER_S) -> None:
        super().__init__(address, joints)
        self._clear_s = clear_s
        self._link: DriverLink | None = None
        self._last: DriverState | None = None
        self._fault = ""
        self._of_joints = False  # what it follows, while it does
        # A fault is read and latched, or cleared, under this lock. Nothing waits while holding it.
        self._latch = threading.RLock()

    @abstractmethod
    def _open_link(self, release: bool) -> DriverLink:
        """Start the process; ``release``: a person asked to clear what stops the robot. Raises ArmError."""

    @abstractmethod
    def _open_gripper(self) -> GripperThread | None:
        """Connect the gripper, if there is one. Raises ArmError."""

    def _close_gripper(self, hand: GripperThread) -> None:
        """End the gripper's thread."""
        hand.stop()

    @abstractmethod
    def _motion(self, target: Array, dynamics: Dynamics | None) -> tuple[object, ...]:
        """Return what asks the process for a joint motion. Raises ArmError for a goal outside the limits."""

    def _refusal(self, setpoint: TimedSetpoint | TimedJoints, state: DriverState) -> str:
        """Return one sentence if the arm cannot follow a set-point; empty if it can."""
        return ""

    def connect(self) -> None:
        """Connect robot and gripper, without moving either.

        Raises:
            ArmError: nothing answers in time, or the robot refuses or cannot be used; or a recovery failed, and then
                only another recovery connects.
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

    def margins(self) -> Margins:
        """Return how near robot and process came to the limits of the checks, since it was connected."""
        link = self._link
        return Margins() if link is None else link.margins()

    def statistics(self) -> PeriodStatistics:
        """Return the periods of the last minute of following, and the margins of the checks. Waits up to 1 s.

        Raises:
            ArmError: not connected, or the process does not answer.
        """
        return self._connected().statistics()

    def command(self, setpoint: Setpoint) -> None:
        """Pass the newest set-point to the process. Returns at once.

        A set-point that the arm cannot follow stops it and is a fault.

        Raises:
            ArmError: not in control, a fault is pending, a value is not finite, or the arm cannot follow it.
        """
        link, state = self._following(joints=False)
        self._pass(timed(setpoint, time.monotonic_ns()), link, state)

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Pass the newest set-point of the joints to the process. Returns at once.

        One that the arm cannot follow stops it and is a fault.

        Raises:
            ArmError: not in control of the joints, a fault is pending, or it has not as many finite joints, or the arm
                cannot follow it.
        """
        link, state = self._following(joints=True)
        self._pass(timed_joints(setpoint, self._joints, time.monotonic_ns()), link, state)

    def stop(self) -> None:
        """Brake to rest and leave control, or end a joint motion early. Never raises; may be called twice."""
        link = self._link
        if link is None or link.trouble(link.state()) or link.ask(DriverRequest.STOP):
            return
        if not link.rests_within(STOP_S):
            link.kill()  # the robot did not stop by command: its watchdog stops it without us
            self._fail(f"robot at {self._address} did not stop within {STOP_S:g} s: look at it, then reset")

    def recover(self) -> None:
        """Clear a fault. If the robot itself has one or is lost, release it and connect again.

        Power, brakes, emergency stops and the robot's mode remain with the person at the robot.

        Raises:
            ArmError: the fault remains.
        """
        with self._lifecycle:
            self.stop()
            if self._cleared():
                return
            self._disconnect()
            try:
                self._connect(release=True)
            except ArmError as error:
                self._fault = str(error)
                raise

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions ``(joints,)`` in rad and wait. Leaves control before and after.

        Args:
            positions: rad, base to flange.
            dynamics: share of the robot's limits. Default is the configuration's.

        Raises:
            ArmError: wrong shape, outside the limits, not connected, a fault is pending, or the motion failed or ended.
        """
        target = self._goal(positions)
        asked = self._motion(target, dynamics)
        with self._lifecycle:
            link = self._ready()
            self.stop()
            self._demand(link.ask(DriverRequest.MOVE, *asked))
            self._await_motion(link, target)

    def close(self) -> None:
        """Stop, leave the robot, disconnect and end the process. May be called twice.

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
                self._demand(link.ask(DriverRequest.START, joints))
            else:
                self._demand_kind(joints, self._of_joints)

    def _following(self, joints: bool) -> tuple[DriverLink, DriverState]:
        """Return what follows set-points of this kind; raises ArmError if nothing does."""
        state, link = self._look(), self._link
        follows = self._of_joints is joints and state is not None and state.mode is Mode.FOLLOWING
        if self._fault or state is None or link is None or not follows:
            raise self._not_in_control(joints, self._fault)
        return link, state

    def _pass(self, given: TimedSetpoint | TimedJoints, link: DriverLink, state: DriverState) -> None:
        """Send a set-point. Stop the arm instead if it cannot follow it."""
        if refusal := self._refusal(given, state):
            self._fail(refusal)
            link.brake()
            raise ArmError(refusal)
        link.send(given)

    def _cleared(self) -> bool:
        """Let the process clear its fault; return whether it did, and the gripper has none."""
        # Nothing of this may outlive it: whoever still holds a Franka's hand keeps it from a new connection.
        link, hand = self._link, self._hand
        if link is None or link.trouble(link.state()) or link.ask(DriverRequest.CLEAR, wait_s=self._clear_s):
            return False
        with self._latch:
            self._fault = "" if hand is None else hand.fault
        return not self._fault

    def _connect(self, release: bool) -> None:
        link = self._open_link(release)
        try:
            hand = self._open_gripper()
        except ArmError:
            link.close()
            raise
        with self._latch:
            self._link, self._hand = link, hand
            self._fault = "" if hand is None else hand.fault

    def _disconnect(self) -> None:
        """End the process and the gripper's thread. Keep the last state and the fault."""
        with self._latch:
            self._look()
            link, self._link = self._link, None
        if link is not None:
            link.close()
        hand, self._hand = self._hand, None
        if hand is not None:
            self._close_gripper(hand)

    def _look(self) -> DriverState | None:
        """Return the newest state, and latch its fault."""
        with self._latch:
            if self._link is not None:
                self._last = state = self._link.state()
                if reason := state.fault or self._link.trouble(state):
                    self._fail(reason)
            return self._last

    def _connected(self) -> DriverLink:
        link = self._link
        if link is None:
            raise self._unconnected()
        return link

    def _ready(self) -> DriverLink:
        link = self._connected()
        self._look()
        self._demand_health(self._fault)
        return link

    def _await_motion(self, link: DriverLink, target: Array) -> None:
        goal, rest = tuple(target.tolist()), (0.0,) * self._joints
        while (state := link.state()).mode is Mode.MOVING and not link.trouble(state):
            link.send(TimedJoints(time.monotonic_ns(), goal, rest))  # somebody still waits for this motion
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

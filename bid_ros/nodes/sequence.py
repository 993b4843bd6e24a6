"""The base of nodes that move the arm in a sequence, such as an episode's preparation: grant, move, hold, wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.interpolate  # noqa: F401  # a third of a second, in which the first motion would hold the node up
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray

from bid_msgs.msg import ArmStatus, Grant, SafetyState
from bid_ros.control.homing import HomingPlan, homing_within
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.topics import ARM_STATUS, EPISODE_CHUNK, GRANT, SAFETY_STATE, TOOL_POSE
from bid_ros.episodes.log import EpisodeStopped
from bid_ros.nodes.base import BidNode, Parameter
from bid_ros.nodes.convert import chunk_to_message, duration_message, header, pose_arrays

CHUNK_STEPS = 10
CHUNK_DT_NS = 50_000_000
# A grant is renewed wherever the sequence waits, at least this often. It is valid for five times as long.
RENEW_S, GRANTED_NS = 0.1, 500_000_000


class SequenceNode(BidNode):
    """Base of a node whose one thread moves the arm step by step. Callbacks only store what arrives.

    Attributes:
        task: task of the system.
        safety: newest state of the safety node. None before the first.

    Args:
        name, parameters: as :class:`BidNode`; ``task`` is among the parameters.
    """

    def __init__(self, name: str, parameters: Sequence[Parameter]) -> None:
        super().__init__(name, parameters)
        self.task = self.load_task()
        self.safety: SafetyState | None = None
        self._homing = homing_within(self.task.limits)
        self._status: ArmStatus | None = None
        self._tool: Any = None
        self._arrived = threading.Condition()
        self._closing = threading.Event()
        self._chunks = self.advertise(EPISODE_CHUNK)
        self._grants = self.advertise(GRANT)
        self._granted: tuple[str, ...] = ()
        self._granted_at = 0.0
        self._grants_sent = 0
        self.subscribe(ARM_STATUS, self._on_status)
        self.subscribe(TOOL_POSE, self._on_tool)
        self.subscribe(SAFETY_STATE, self._on_safety)

    def on_status(self, message: ArmStatus) -> None:
        """Take one status of the arm. Subclasses override it."""

    def progress(self, episode: int, elapsed_s: float, extra: str) -> None:
        """Show the progress of an episode. Subclasses override it."""

    def close_sequence(self) -> None:
        """Make every wait of the sequence end with EpisodeStopped."""
        self._closing.set()
        with self._arrived:
            self._arrived.notify_all()

    def arm_ready(self) -> bool:
        """Whether a status of the arm has arrived."""
        return self._status is not None and self._tool is not None

    def safety_ready(self) -> bool:
        """Whether the safety node lets chunks pass."""
        return self.safety is not None and self.safety.state == SafetyState.RUNNING

    def status(self) -> ArmStatus:
        """Newest arm status. Use it only when the arm is ready."""
        assert self._status is not None
        return self._status

    def tool_position(self) -> NDArray[np.float64]:
        """Newest tool position ``(3,)`` in m, base frame. Use it only when the arm is ready."""
        position: NDArray[np.float64] = self._tool[0]
        return position

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Block the sequence until a condition holds.

        Raises:
            EpisodeStopped: safety or the arm stopped, the node is closing, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        with self._arrived:
            while not condition():
                self.check()
                if not self._arrived.wait(timeout=0.05) and time.monotonic() > deadline:
                    raise EpisodeStopped(f"aborted: {what} did not happen within {timeout_s:g} s", safety=False)

    def check(self) -> None:
        """Renew the grant of the source that moves the arm now. Every wait of the sequence calls this.

        Raises:
            EpisodeStopped: safety or the arm stopped, or the node is closing.
        """
        if self._closing.is_set():
            raise EpisodeStopped("aborted: shut down", safety=False)
        if self.safety is not None and self.safety.state == SafetyState.STOPPED:
            raise EpisodeStopped(f"stopped: {self.safety.reason}", safety=True)
        if self._status is not None and self._status.mode in (ArmStatus.STOPPED, ArmStatus.FAULT):
            raise EpisodeStopped(f"stopped: {self._status.reason}", safety=True)
        if self._granted and time.monotonic() - self._granted_at >= RENEW_S / 2:
            self.grant(*self._granted)

    def grant(self, *sources: str) -> None:
        """Let only these sources move the arm, until the grant ends or is replaced. No source ends it."""
        self._granted, self._granted_at = sources, time.monotonic()
        message = Grant(
            header=header(self.now_ns()),
            robot=self.robot,
            granter="episode",
            sources=sources,
            duration=duration_message(GRANTED_NS),
            sequence=self._grants_sent,
        )
        self._grants_sent += 1
        self._grants.publish(message)

    def move_to(self, position: Any, rotation_6d: Any, gripper: float, settle_s: float = 0.3) -> None:
        """Move the tool to a pose through the safety node, and hold it for ``settle_s``. Blocks."""
        tool, quaternion = self._tool
        start = matrix_to_6d(matrix_from_quaternion(quaternion))
        plan = HomingPlan(tool, start, position, rotation_6d, gripper, self.now_ns(), self._homing)
        self._follow(plan, plan.duration + settle_s)

    def hold(
        self, position: Any, rotation_6d: Any, gripper: float, until: Callable[[], bool], timeout_s: float, what: str
    ) -> None:
        """Hold the tool at a pose until a condition holds. Raises EpisodeStopped as :meth:`wait`."""
        plan = HomingPlan(position, rotation_6d, position, rotation_6d, gripper, self.now_ns())
        self._follow(plan, timeout_s, until)
        if not until():
            raise EpisodeStopped(f"aborted: {what} did not happen within {timeout_s:g} s", safety=False)

    def _follow(self, plan: HomingPlan, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        end = time.monotonic() + duration_s
        while time.monotonic() < end and not (until is not None and until()):
            self.check()
            chunk = plan.chunk_at(self.now_ns(), CHUNK_STEPS, CHUNK_DT_NS)
            chunk = replace(chunk, frame_id=self.frame_prefix + chunk.frame_id)
            self._chunks.publish(chunk_to_message(chunk, self.task, self.robot))
            self._closing.wait(0.05)

    def _on_status(self, message: ArmStatus) -> None:
        with self._arrived:
            self._status = message
            self.on_status(message)
            self._arrived.notify_all()

    def _on_tool(self, message: PoseStamped) -> None:
        self._tool = pose_arrays(message.pose)

    def _on_safety(self, message: SafetyState) -> None:
        with self._arrived:
            self.safety = message
            self._arrived.notify_all()

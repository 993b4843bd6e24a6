"""The base of nodes that move the arm in a sequence, such as an episode's preparation: grant, move, hold, wait."""

import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import scipy.interpolate  # noqa: F401  # a third of a second, in which the first motion would hold the node up

from bid_msgs.msg import ArmStatus, Grant, SafetyState
from bid_ros.control.homing import HomingPlan
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.outcome import EpisodeOutcome
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.topics import ARM_STATUS, EPISODE_CHUNK, GRANT, SAFETY_STATE
from bid_ros.episodes.causes import ARM_ENDS, of_safety, outcome_of_end, outcome_of_safety, rule_of_arm
from bid_ros.episodes.stops import EpisodeStopped, aborted
from bid_ros.nodes.base import COMMAND_PRIORITY, BidNode
from bid_ros.nodes.joints import arm_of
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.ros_messages import chunk_to_message, duration_message, header
from bid_ros.system.priority import raise_priority

CHUNK_STEPS = 10
CHUNK_DT_NS = 50_000_000
# A grant is renewed wherever the sequence waits, at least this often. It is valid for five times as long.
RENEW_S, GRANTED_NS = 0.1, 500_000_000
SAFETY_SAYS_S = 0.3  # s in which the safety node says why it stopped, after the arm node has heard of it
# Arm node and safety node each report the silence of the other one. If both are silent, the sequence reports it, after
# so many s and so many looks: a sequence that was held up itself has heard nothing either.
SILENT_S, SILENT_LOOKS = 0.6, 6
END_SAYS_S = 3.0  # s in which this node is asked to end too, after the arm node; then it is known who ended the run


class SequenceNode(BidNode):
    """Base of a node whose one thread moves the arm step by step. Callbacks only store what arrives.

    Attributes:
        task: task of the system.
        safety, status: newest state of the safety node and of the arm. None before the first.
        tool: newest position (3,) in m and quaternion (4,) xyzw of the tool, base frame. None before the first.
        closing: set it, and every wait of the sequence ends with EpisodeStopped.
        slow: factor of the speed of :meth:`move_to`, above 0 and up to 1.
        pace: share of real time that a twin kept lately. A subclass that hears it sets it.

    Args:
        name, parameters: as :class:`BidNode`; ``task``, ``arm_config`` and ``twin`` are among the parameters.
    """

    def __init__(self, name: str, parameters: Sequence[Parameter]) -> None:
        super().__init__(name, parameters)
        raise_priority(COMMAND_PRIORITY)  # a grant that a busy computer holds up for 0.5 s stops the arm
        self.task = self.load_task()
        self.safety: SafetyState | None = None
        self._task_chunks = TaskChunks(self.task, arm_of(self, self.task))
        self.status: Any = None
        self._told, self._told_at = (ArmStatus.HOLDING, ""), 0.0  # by the arm, and since when
        self._heard_at, self._silent_looks = 0.0, 0  # of arm or safety node
        self.tool: Any = None
        self._arrived = threading.Condition()
        self.closing = threading.Event()
        self.slow = self.pace = 1.0
        self._chunks = self.advertise(EPISODE_CHUNK)
        self._grants = self.advertise(GRANT)
        self._granted: tuple[str, ...] = ()
        self._granted_at = 0.0
        self._grants_sent = 0
        self.subscribe(ARM_STATUS, self.on_status, newest=True)
        self.subscribe(SAFETY_STATE, self.on_safety, patient=True)

    def wait(
        self, condition: Callable[[], bool], timeout_s: float, what: str, missing: Callable[[], str] | None = None
    ) -> None:
        """Block the sequence until a condition holds.

        Args:
            condition: is asked at least every 50 ms.
            timeout_s: longest wait in s.
            what, missing: what did not happen, and what it waited for, in the sentence when the time is over.

        Raises:
            EpisodeStopped: safety or the arm stopped, the node is closing, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        with self._arrived:
            while not condition():
                self.check()
                self._arrived.wait(timeout=0.05)
                if time.monotonic() > deadline:
                    problem = f"{what} did not happen within {timeout_s:g} s"
                    raise aborted(f"{problem}: {missing()}" if missing else problem, "not_ready")

    def wait_for_all(self, missing: Collection[str], timeout_s: float, robot_s: float = 0.0) -> None:
        """Block until the arm says where it is, every node was heard, and the safety node runs.

        Args:
            missing: names of the nodes that were not heard yet; it shrinks.
            timeout_s: for each of the three, s.
            robot_s: s more for the arm, whose robot a person may switch on only now.

        Raises:
            EpisodeStopped: as :meth:`wait`.
        """
        known = lambda: self.status is not None and self.tool is not None  # noqa: E731
        self.wait(known, timeout_s + robot_s, "a sign of life of the arm")
        everybody, longer = "a sign of life of every node", "a larger ready_timeout_s of the episode node waits longer"
        waiting = lambda: f"waiting for {', '.join(sorted(missing))}; {longer}"  # noqa: E731
        self.wait(lambda: not missing, timeout_s, everybody, waiting)
        # Last: until the first grant the safety node goes back to waiting whenever a node is silent.
        self.wait(
            lambda: self.safety is not None and self.safety.state == SafetyState.RUNNING,
            timeout_s,
            "a sign of life of every required node",
            lambda: self.safety.reason if self.safety is not None else "the safety node says nothing",
        )

    def check(self) -> None:
        """Renew the grant of the source that moves the arm now. Every wait of the sequence calls this.

        Raises:
            EpisodeStopped: safety or the arm stopped, or the node is closing.
        """
        if (stop := self.stop()) is not None:
            raise stop
        if self._granted and time.monotonic() - self._granted_at >= RENEW_S / 2:
            self.grant(*self._granted)

    def stop(self) -> EpisodeStopped | None:
        """Return why the sequence cannot go on now, None if it can."""
        if self.closing.is_set():
            return EpisodeStopped(self.end_outcome())
        if self.safety is not None and self.safety.state == SafetyState.STOPPED:
            return self._stopped_by(self.safety.rule, self.safety.reason, self.safety.measured)
        if self.status is not None and self.status.mode in (ArmStatus.STOPPED, ArmStatus.FAULT):
            reason, fault = self.status.reason, self.status.mode == ArmStatus.FAULT
            others_say_s = SAFETY_SAYS_S if of_safety(reason) else END_SAYS_S if reason == ARM_ENDS else 0.0
            if time.monotonic() - self._told_at > others_say_s or not others_say_s:
                return self._stopped_by(rule_of_arm(reason, fault), reason)
        if self._granted and self.safety is not None and self.safety.state == SafetyState.WAITING:
            # It lets nothing pass, so the motion would begin late, and far behind its plan.
            return self._stopped_by("waiting", f"the safety node is {self.safety.reason}")
        if self._granted and (silent_s := self.silent_s()):
            return self._stopped_by("heartbeat", f"neither arm node nor safety node was heard for {silent_s:.1f} s")
        return None

    def silent_s(self) -> float:
        """Return for how long neither arm node nor safety node was heard, s; 0 if one was lately."""
        self._silent_looks += 1
        silent_s = time.monotonic() - self._heard_at
        return silent_s if silent_s > SILENT_S and self._silent_looks >= SILENT_LOOKS else 0.0

    def _hear(self) -> None:
        self._heard_at, self._silent_looks = time.monotonic(), 0

    def _stopped_by(self, rule: str, reason: str, measured: float = math.nan) -> EpisodeStopped:
        return EpisodeStopped(outcome_of_safety(rule, reason, measured, self.value("twin"), self.pace), rule)

    def end_outcome(self) -> EpisodeOutcome:
        """Return the outcome of an episode during which this node is asked to end. A subclass may know more."""
        return outcome_of_end(None)

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

    def move_to(self, position: Any, rotation_6d: Any, gripper: float) -> None:
        """Move the tool to a pose through the safety node, and hold it for 0.3 s. Blocks."""
        tool, quaternion = self.tool
        start = matrix_to_6d(matrix_from_quaternion(quaternion))
        plan = HomingPlan(tool, start, position, rotation_6d, gripper, self.now_ns(), self.task.limits, self.slow)
        self._follow(plan, plan.duration + 0.3)

    def hold(
        self, position: Any, rotation_6d: Any, gripper: float, until: Callable[[], bool], timeout_s: float, what: str
    ) -> None:
        """Hold the tool at a pose until a condition holds. Raises EpisodeStopped as :meth:`wait`."""
        plan = HomingPlan(position, rotation_6d, position, rotation_6d, gripper, self.now_ns())
        self._follow(plan, timeout_s, until)
        if not until():
            raise aborted(f"{what} did not happen within {timeout_s:g} s", "preparation")

    def _follow(self, plan: HomingPlan, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        begun = time.monotonic()
        self._task_chunks.begin(self.status.joint_positions, plan.start_ns)
        while time.monotonic() < begun + duration_s and not (until is not None and until()):
            self.check()
            # By a steady clock: if somebody sets the other one, the plan must not jump to its end.
            now_ns = plan.start_ns + round((time.monotonic() - begun) * NANOSECONDS)
            chunk = self._of_task(plan.chunk_at(now_ns, CHUNK_STEPS, CHUNK_DT_NS))
            self._chunks.publish(chunk_to_message(chunk, self.task, self.robot, self.frame_prefix))
            self.closing.wait(0.05)

    def _of_task(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk of the task for one of the tool's pose."""
        try:
            return self._task_chunks.of(chunk)
        except ArmError as error:
            raise aborted(str(error), "unreachable") from error

    def on_status(self, message: ArmStatus) -> None:
        """Take one status of the arm. A subclass may do more with it."""
        with self._arrived:
            self._hear()
            self.status, self.tool = message, pose_arrays(message.tool)
            told = (message.mode, message.reason)
            if told != self._told:
                self._told, self._told_at = told, time.monotonic()
            self._arrived.notify_all()

    def on_safety(self, message: SafetyState) -> None:
        """Take one state of the safety node. A subclass may do more with it."""
        with self._arrived:
            self._hear()
            self.safety = message
            self._arrived.notify_all()

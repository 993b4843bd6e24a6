"""Shadow of a bag: what safety would do with the decisions of a replay, beside what was executed then."""

from collections import deque
from typing import Any, Final

import numpy as np

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.core.shapes import opening_at_rest
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, POLICY_CHUNK, SAFETY_CHUNK
from bid_ros.recording.reader import BagReader
from bid_ros.replay.lockstep import recorded_chunk
from bid_ros.safety.shadow import Shadow, Way

POLICY: Final = "policy"
LATER_NS: Final = NANOSECONDS // 20
"""From the frames to the chunk, where the bag does not say it: about what a decision takes."""
KNOWN_NS: Final = NANOSECONDS // 5
"""A tool that was measured longer ago is not known, as at the safety node."""


class BagShadow:
    """Judges the decisions of a replay at the times of the recorded chunks, with the arm where it was then.

    Args:
        reader: the bag; what it says of the arm and of chunks is read at once.
        task: of the system.
        arm: as :class:`bid_ros.safety.gate.Gate`.

    Attributes:
        known: whether the bag says where the arm was; without that no chunk would pass, and nothing is judged.
    """

    def __init__(self, reader: BagReader, task: Task, arm: ArmModel | None) -> None:
        self._shadow, self._way = Shadow(task, arm), Way(task, arm)
        self._states: deque[tuple[int, Any]] = deque()
        self._judged_ns: dict[int, int] = {}
        self._forwarded: dict[int, ActionChunk] = {}
        self._newest: Any = None
        self._stream: int | None = None
        self._executed = self._equal = 0
        for item in reader.messages((ARM_STATUS, POLICY_CHUNK, SAFETY_CHUNK)):
            message = item.message
            if item.topic == ARM_STATUS:
                self._states.append((item.stamp_ns, message))
            elif item.topic == POLICY_CHUNK:
                self._judged_ns[stamp_ns(message)] = item.stamp_ns
            elif message.source == POLICY:
                self._forwarded[stamp_ns(message)] = recorded_chunk(message)
        self.known = bool(self._states) and hasattr(self._states[0][1], "tool")

    def decided(self, chunk: ActionChunk, stream: int) -> None:
        """Judge a decision of the episode with this number, and hold it against what was executed."""
        if not self.known:
            return
        if stream != self._stream:
            self._stream = stream
            self._shadow.rest()
            self._way.rest()
        now_ns = self._judged_ns.get(chunk.stamp_ns, chunk.stamp_ns + LATER_NS)
        found = self._shadow.judge(chunk, now_ns, *self._measured(now_ns))
        done = self._forwarded.get(chunk.stamp_ns)
        if done is not None:
            self._executed += 1
            self._equal += found.verdict.ok and _same(found.chunk, done)
            self._shadow.executed(done)
            self._way.go(done, now_ns)

    def report(self) -> dict[str, Any]:
        """Return the report of the shadow, and how much of it was executed, equal in every bit."""
        while self.known and self._states:
            self._take()
        executed = {"executed": self._executed, "equal": self._equal, "executed_m": self._way.length_m}
        return {**self._shadow.report(), **executed, "executed_digest": self._way.digest}

    def _measured(self, now_ns: int) -> tuple[Array | None, Array | None, Array | None]:
        while self._states and self._states[0][0] <= now_ns:
            self._take()
        if self._newest is None or now_ns - stamp_ns(self._newest) > KNOWN_NS:
            return None, None, None
        (place, turn), joints = pose_arrays(self._newest.tool), self._newest.joint_positions
        return place, np.asarray(joints, dtype=np.float64), matrix_from_quaternion(turn)

    def _take(self) -> None:
        self._newest = message = self._states.popleft()[1]
        self._shadow.holds(opening_at_rest(message.gripper_width, message.gripper_busy))
        self._shadow.measured(stamp_ns(message), pose_arrays(message.tool)[0])


def executed_row(report: dict[str, Any]) -> tuple[str, str]:
    """Return the row about what was executed, for a terminal: name and text."""
    if not report["executed"]:
        return "executed", "nothing of the policy"
    same = f"{report['equal']} equal in every bit" if report["equal"] < report["executed"] else "all equal in every bit"
    return "executed", f"{report['executed']} of these chunks, {same}; {report['executed_m']:.3f} m"


def _same(one: ActionChunk, other: ActionChunk) -> bool:
    equal = one.actions.shape == other.actions.shape and one.actions.tobytes() == other.actions.tobytes()
    return equal and one.scale == other.scale and one.dt_ns == other.dt_ns

"""What the safety node does with a policy in shadow mode: it judges, counts and tells, and forwards nothing."""

import json
from typing import Final

from numpy.typing import ArrayLike
from std_msgs.msg import String

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.core.topics import SAFETY_SHADOW
from bid_ros.nodes.base import BidNode
from bid_ros.safety.gate import Measured
from bid_ros.safety.shadow import Shadow
from bid_ros.safety.verdict import Verdict

TELL_S: Final = 0.5  # between two reports


class Shadowing:
    """Judges the policy while it is asked to decide, and publishes the report of the run so far.

    Args:
        node: the safety node.
        task, arm, slow: as :class:`bid_ros.safety.shadow.Shadow`.
    """

    def __init__(self, node: BidNode, task: Task, arm: ArmModel | None, slow: float) -> None:
        self._node, self._shadow = node, Shadow(task, arm, slow)
        self._reports = node.advertise(SAFETY_SHADOW)
        self._asked, self._episodes = False, 0
        node.create_timer(TELL_S, self._tell)

    def granted(self, asked: bool) -> None:
        """Take whether the policy is asked to decide. When it is not any more, an episode is over."""
        if self._asked and not asked:
            self._episodes += 1
            self._shadow.rest()
            self._tell()
        self._asked = asked

    def told(self, at_ns: int, tool_position: ArrayLike, opening: float | None) -> None:
        """Take where the tool was measured, m, at a ROS time in ns, and what the gripper measures."""
        self._shadow.holds(opening)
        self._shadow.measured(at_ns, tool_position)

    def judge(self, chunk: ActionChunk | Verdict, now_ns: int, measured: Measured) -> None:
        """Judge a chunk, or count why it is none."""
        if not self._asked:
            return
        if isinstance(chunk, Verdict):
            self._shadow.refuse(chunk)
        else:
            self._shadow.judge(chunk, now_ns, *measured)

    def _tell(self) -> None:
        report = {"episodes": self._episodes, **self._shadow.report()}
        self._reports.publish(String(data=json.dumps(report)))

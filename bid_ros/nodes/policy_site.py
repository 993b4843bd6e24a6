"""What a policy node sees and commands of one arm."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, Qos
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.features import subscribe_features
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.joints import arm_of, posed_arm_of
from bid_ros.nodes.policy_report import PolicyReport
from bid_ros.observing.intake import Intake
from bid_ros.observing.measured import MeasuredJoints
from bid_ros.policy.second_best import Screening
from bid_ros.safety.grants import Grants
from bid_ros.safety.screen import policy_chunks


class Looks(NamedTuple):
    """The checks of a decision's samples, as :class:`bid_ros.policy.decide.DecisionMaker` takes them."""

    screen: Screening
    free: Callable[[Array], bool] | None
    rest: Screening | None
    aware: Callable[[Observation], None]


class PolicySite:
    """One arm of a policy node.

    Args:
        node: in the namespace of the arm; it has the parameters ``arm_config`` and ``twin``.
        commanded: task of the arm's system.
        task: that the policy was made for.

    Attributes:
        chunks: makes the policy's chunks into the system's.
        joints: measured.
        screen: of samples.
        looks: of a policy of this arm alone.
    """

    def __init__(self, node: BidNode, commanded: Task, task: Task) -> None:
        self.node, self.commanded, self.task = node, commanded, task
        self._arm, posed = arm_of(node, commanded), posed_arm_of(node, commanded)
        self.chunks, self.screen = policy_chunks(commanded, task, self._arm, posed)
        self.joints = MeasuredJoints()
        self.looks = Looks(self.screen.passes, self.screen.free, self.screen.rest, self.joints.tells(self.screen))

    def connect(
        self,
        buffer: ObservationBuffer,
        observe: Callable[[str, int, Any], None],
        refuse: Callable[[str, str], None],
        granted: Callable[[], None],
        lock: AbstractContextManager[object],
        live: bool = True,
        lossless: Qos | None = None,
    ) -> tuple[Intake, PolicyReport, Grants]:
        """Hear what is observed and who grants, and advertise what is decided.

        Args:
            buffer: takes what is observed.
            observe, refuse, lossless: as :func:`bid_ros.nodes.features.subscribe_features`.
            granted, lock: called after each grant, with the lock held.
            live: samples are of now.
        """
        report = PolicyReport(self.node, self.task, self.commanded, self.chunks.of)
        subscribe_features(self.node, self.task, observe, refuse, lossless, {ARM_STATUS: self.joints.take})
        if self._arm is not None:
            self.node.subscribe(ARM_STATUS, self.joints.take, newest=True)
        return Intake(self.task, buffer, live), report, subscribe_grants(self.node, granted, lock)

    def begin(self, stamp_ns: int) -> None:
        """Begin a motion where the arm was measured last."""
        if self.joints.newest is not None:
            self.chunks.begin(self.joints.newest, stamp_ns)

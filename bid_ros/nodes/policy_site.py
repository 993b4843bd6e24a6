"""What a policy node sees and commands of one arm."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.rotation import Array
from bid_ros.core.stamps import sample_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, Qos, feature_topic, recorded_topics
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.joints import arm_of, posed_arm_of
from bid_ros.nodes.policy_report import PolicyReport
from bid_ros.observing.features import extract
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


def subscribe_features(
    node: BidNode,
    task: Task,
    observe: Callable[[str, int, Any], None],
    refuse: Callable[[str, str], None],
    lossless: Qos | None = None,
    heard: Mapping[str, Callable[[Any], None]] = MappingProxyType({}),
) -> None:
    """Subscribe to the topic of each observed feature and pass on (name, stamp_ns, value).

    Args:
        node, task: who observes, and what.
        observe: takes each sample.
        refuse: takes the feature's name and why a message does not fit the task.
        lossless: of publishers that lose nothing, as in a replay; None: as the topics of a live system.
        heard: by topic, what takes its messages before ``observe`` takes their samples.
    """
    topics = recorded_topics(task)
    features: dict[str, list[Feature]] = {}
    for feature in task.observation:
        features.setdefault(feature_topic(feature), []).append(feature)
    for name, carried in features.items():
        topic = topics[name] if lossless is None else replace(topics[name], qos=lossless)
        node.subscribe(name, partial(_take, node, carried, observe, refuse, heard.get(name)), topic)


def _take(
    node: BidNode,
    features: list[Feature],
    observe: Callable[[str, int, Any], None],
    refuse: Callable[[str, str], None],
    heard: Callable[[Any], None] | None,
    message: Any,
) -> None:
    stamp_ns = sample_ns(message, node.now_ns())
    if heard is not None:
        heard(message)
    for feature in features:
        try:
            value = extract(feature, message)
        except BidError as error:
            refuse(feature.name, str(error))
        else:
            observe(feature.name, stamp_ns, value)


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
            observe, refuse, lossless: as :func:`subscribe_features`.
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

"""What a policy node publishes of each decision, and counts."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.core.topics import DECISION, POLICY_CHUNK
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.ros_messages import chunk_to_message, decision_to_message, observed_fields
from bid_ros.policy.budget import SampleBudget
from bid_ros.policy.decide import DecisionMaker, DecisionRecord

RECENT: Final = 100  # decisions whose latency counts
NEXT_DECODER: Final = "next_decoder"
"""Key in the diagnostics of the policy node: a decoder that it has been told to take, and does not use yet."""


def limit_samples(logger: Any, maker: DecisionMaker, budget: SampleBudget, limit_ms: float) -> None:
    """Draw as many samples as the budget says, and log a change of them: as a warning if they are not all.

    Args:
        logger: of a node.
        maker: draws them.
        budget: says how many.
        limit_ms: time that a decision may take.
    """
    if budget.samples != (maker.limit or budget.steps[0]):
        said = f"N = {budget.samples} of {budget.steps[0]} fits {limit_ms:g} ms a decision"
        # Two lines: rclpy refuses a line of code that logs at another severity than before.
        if budget.samples < budget.steps[0]:
            logger.warning(said)
        else:
            logger.info(said)
    maker.limit = budget.samples


class PolicyReport:
    """Publishes decisions and keeps count. One thread publishes; any thread may read.

    Args:
        node: publishes.
        task: layout of the policy's chunks.
        commanded: layout of the chunks that are published; it differs where joints are commanded.
        convert: makes the first of these the second. Raises ArmError for a pose out of the arm's reach.

    Attributes:
        decided: decisions published, which is also the number of the next one.
        missed: decisions that were due and not made.
        screened: samples that were screened out.
        decisions: publisher of the decisions.
    """

    def __init__(
        self, node: BidNode, task: Task, commanded: Task, convert: Callable[[ActionChunk], ActionChunk]
    ) -> None:
        self._node, self._task, self._commanded, self._convert = node, task, commanded, convert
        self.decided = self.missed = self.screened = 0
        self._durations_ms: deque[float] = deque(maxlen=RECENT)
        self._chunks = node.advertise(POLICY_CHUNK)
        self.decisions = node.advertise(DECISION)

    def values(self) -> dict[str, object]:
        """Return the counts, and latency percentiles of the last hundred decisions, for the diagnostics."""
        counts = {"decisions": self.decided, "missed": self.missed, "screened_samples": self.screened}
        recent = list(self._durations_ms)
        if not recent:
            return {**counts}
        return {**counts, "decision_ms_p50": round(median(recent), 1), "decision_ms_max": round(max(recent), 1)}

    def publish(
        self,
        record: DecisionRecord,
        observation: Observation,
        complete_ns: int,
        delay: int | None,
        setting: Mapping[str, Any],
    ) -> int:
        """Publish the chunk of a decision, then everything about it; return the time in ns from stamp to chunk.

        Args:
            record, observation: the decision, and on what it was made.
            complete_ns: steady time at which the observation was complete.
            delay: steps that the decoder was told.
            setting: how decisions are made now, as their message says it.
        """
        node = self._node
        self.screened += record.screened
        try:
            self._chunks.publish(chunk_to_message(self._convert(record.chunk), self._commanded, node.robot))
        except ArmError as error:  # no chunk: the arm follows the one before, and then stops
            node.get_logger().warning(str(error), throttle_duration_sec=1.0)
        decision_ms = (time.monotonic_ns() - complete_ns) / 1e6
        delay_ns = node.now_ns() - observation.stamp_ns
        self._durations_ms.append(decision_ms)
        said = {"robot": node.robot, "sequence": self.decided, "missed": self.missed, **setting}
        times = {"observation_age": delay_ns / 1e9 - decision_ms / 1e3, "decision_time": decision_ms / 1e3}
        origin = {**observed_fields(observation), "delay_steps": -1 if delay is None else delay}
        self.decisions.publish(decision_to_message(record, self._task, **said, **times, **origin))
        self.decided += 1
        return delay_ns

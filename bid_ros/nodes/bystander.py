"""Chooses who prepares and judges the episodes of a run. The bystander is the one that leaves the arm where it is."""

import json
import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import String

from bid_ros.core.task import Task
from bid_ros.core.topics import SAFETY_SHADOW
from bid_ros.episodes.log import RunLog
from bid_ros.nodes.operator import Operator, RobotOperator, TwinOperator
from bid_ros.nodes.sequence import SequenceNode
from bid_ros.tasks.base import NOT_JUDGED

REPORT_S: Final = 2.0  # s in which the safety node counts the last chunks of an episode
Correct = Callable[[str], tuple[bool, str]]


class Bystander(Operator):
    """Prepares nothing: the arm stays where it is. An episode lasts its time, unless a person or a device ends it."""

    def __init__(self, node: SequenceNode, task: Task, person: bool) -> None:
        super().__init__(node, task, None, person=person)
        self._timeout = NOT_JUDGED

    def prepare(self, start: NDArray[np.float64], seed: int, moving: float, label: str) -> None:
        """Return at once."""

    def _lay_out(self, start: NDArray[np.float64], seed: int, moving: float) -> None:
        """Nothing is laid out."""


def operator_of(node: SequenceNode, task: Task, correct: Correct | None, person: bool) -> Operator:
    """Return who prepares and judges the episodes of an episode node, as its parameters say.

    Args:
        node, task: as :class:`bid_ros.nodes.operator.Operator`.
        correct: takes an outcome that a person gives after the end of an episode; None: nobody gives one.
        person: a person starts each episode and says how it ended.
    """
    if not node.value("prepares"):
        return Bystander(node, task, person or not node.value("twin"))
    if node.value("twin"):
        return TwinOperator(node, task, correct, person)
    return RobotOperator(node, task, correct)


class ShadowReports:
    """Keeps the newest report of the safety node in the log of a run in shadow mode.

    Args:
        node: of the episodes.
        log: of the run.
    """

    def __init__(self, node: SequenceNode, log: RunLog) -> None:
        self._log, self._episodes = log, 0
        node.subscribe(SAFETY_SHADOW, self._take, patient=True)

    def wait(self) -> None:
        """Block until the report covers the episode that ended now, but not for long."""
        self._episodes += 1
        end = time.monotonic() + REPORT_S
        while (self._log.shadow or {}).get("episodes", 0) < self._episodes and time.monotonic() < end:
            time.sleep(0.02)

    def _take(self, message: String) -> None:
        self._log.shadow = json.loads(message.data)

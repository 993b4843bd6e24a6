"""Waits before an episode for a person's device and the policy's decoder, so that the wait uses up none of its time."""

import time
from collections.abc import Callable
from typing import Final

from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import Bool

from bid_ros.core.topics import DIAGNOSTICS, TELEOP_SWITCH
from bid_ros.nodes.policy_report import NEXT_DECODER
from bid_ros.nodes.sequence import SequenceNode

FRESH_S: Final = 0.5  # s for which the device counts as there after it was heard
PERSON_S: Final = 3600.0
DECODER_S: Final = 60.0  # as long as the policy node may take; a busy computer with two cores took 7 s


class StartWatch:
    """Listens to the dead man's switch, held or open, and to the policy node about a change of its decoder.

    While the device is gone, nobody publishes the switch. While a decoder is warmed up, there is no decision. The news
    of a change takes up to 50 ms: an episode that begins in that time may begin without decisions.

    Args:
        node: runs the episodes.
        name: of the device that a person drives with; empty: a program drives, and no device is waited for.

    Attributes:
        awaits: what an episode that is prepared waits for now: the device, or the decoder; empty: nothing.
    """

    def __init__(self, node: SequenceNode, name: str) -> None:
        self._node, self._name = node, name
        self.awaits, self._heard_s, self._decoder = "", -FRESH_S, ""
        node.subscribe(DIAGNOSTICS, self._hear_policy, patient=True)
        if name:
            node.subscribe(TELEOP_SWITCH, self._hear, patient=True)

    def wait(self, again: Callable[[], bool]) -> None:
        """Hold the arm until both are there, or until ``again``. Raises EpisodeStopped as the node's waits."""
        if self._name:
            device = f"the device '{self._name}'"
            self._await(device, self._there, PERSON_S, f"a sign of life of {device}", again)
        decoder = f"the decoder {self._decoder}"
        self._await(decoder, lambda: not self._decoder, DECODER_S, f"the change to {decoder}", again)

    def _await(
        self, what: str, there: Callable[[], bool], limit_s: float, happens: str, again: Callable[[], bool]
    ) -> None:
        if there():
            return
        self.awaits = what
        print(f"the episode begins once {what} is there", flush=True)
        self._node.tell()
        try:
            self._node.wait(lambda: there() or again(), limit_s, happens)
        finally:
            self.awaits = ""

    def _there(self) -> bool:
        return time.monotonic() - self._heard_s < FRESH_S

    def _hear(self, _: Bool) -> None:
        self._heard_s = time.monotonic()

    def _hear_policy(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith("policy") and status.hardware_id == self._node.hardware_id:
                self._decoder = next((item.value for item in status.values if item.key == NEXT_DECODER), "")

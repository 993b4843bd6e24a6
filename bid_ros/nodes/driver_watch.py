"""Waits for the device of a person before an episode begins, so that its time does not pass before anybody drives."""

import time
from collections.abc import Callable
from typing import Final

from std_msgs.msg import Bool

from bid_ros.core.topics import TELEOP_SWITCH
from bid_ros.nodes.sequence import SequenceNode

FRESH_S: Final = 0.5  # s for which the device counts as there after it was heard
PERSON_S: Final = 3600.0


class DriverWatch:
    """Hears the dead man's switch, held or open: while the device is gone, nobody says it.

    Args:
        node: runs the episodes.
        name: of the device that a person drives with; empty: a program drives, and nobody is waited for.

    Attributes:
        awaits: what an episode that is prepared waits for now: the device; empty: nothing.
    """

    def __init__(self, node: SequenceNode, name: str) -> None:
        self._node, self._name = node, name
        self.awaits, self._heard_s = "", -FRESH_S
        if name:
            node.subscribe(TELEOP_SWITCH, self._hear, patient=True)

    def wait(self, again: Callable[[], bool]) -> None:
        """Hold the arm until the device is there, or until ``again``. Raises EpisodeStopped as the node's waits."""
        if not self._name or self._there():
            return
        self.awaits = f"the device '{self._name}'"
        print(f"the episode begins once {self.awaits} is there", flush=True)
        self._node.tell()
        try:
            self._node.wait(lambda: self._there() or again(), PERSON_S, f"a sign of life of {self.awaits}")
        finally:
            self.awaits = ""

    def _there(self) -> bool:
        return time.monotonic() - self._heard_s < FRESH_S

    def _hear(self, _: Bool) -> None:
        self._heard_s = time.monotonic()

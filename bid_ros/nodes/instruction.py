"""The text of the task that a policy is asked with: a parameter, told between two episodes, and recorded."""

from collections.abc import Mapping
from typing import Any, Final

from std_msgs.msg import String

from bid_ros.core.errors import BidError
from bid_ros.core.topics import INSTRUCTION
from bid_ros.nodes.base import BidNode
from bid_ros.policy.base import Policy

PARAMETER: Final = "instruction"  # name of the parameter
LONGEST: Final = 1000  # characters


class Instruction:
    """Keeps the newest text that was given. Any thread may give one; the thread that decides tells the policy.

    Args:
        node: has the parameter ``instruction``, and publishes what the policy is asked with.
        policy: is asked.
        label: of its bundle.

    Raises:
        BidError: the parameter holds a text that the policy does not take.
    """

    def __init__(self, node: BidNode, policy: Policy, label: str) -> None:
        self._instruct, self._label = policy.capabilities.instruct, label
        self._given, self._text = str(node.value(PARAMETER)), ""
        self._told: str | None = None
        self.check({PARAMETER: self._given})
        self._publisher = node.advertise(INSTRUCTION)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise BidError if the parameter is among some values, and the policy does not take its text."""
        text = values.get(PARAMETER, "")
        if text and self._instruct is None:
            raise BidError(f"{PARAMETER} is '{text}', but bundle {self._label} takes no text; valid is an empty one")
        if len(text) > LONGEST or text != text.strip():
            raise BidError(
                f"{PARAMETER} has {len(text)} characters; valid are up to {LONGEST} without space around them"
            )

    def take(self, values: Mapping[str, Any]) -> None:
        """Keep a text that :meth:`check` has let pass, for the next episode."""
        self._given = values.get(PARAMETER, self._given)

    def tell(self) -> None:
        """Let the policy be asked with the newest text from now on, and publish it. Only between two episodes."""
        given = self._given
        if self._instruct is None or given == self._told:
            return
        self._told, self._text = given, self._instruct(given)
        self._publisher.publish(String(data=self._text))

    def values(self) -> Mapping[str, object]:
        """Return the text for the diagnostics; nothing of a policy that takes none."""
        return {} if self._instruct is None else {PARAMETER: self._text}

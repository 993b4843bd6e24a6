"""Topics that move the arm have one publisher each. A second one is a stranger, and a reason to stop."""

from collections.abc import Sequence
from typing import Final

from rclpy.node import Node

UNKNOWN: Final = "a node without a name"  # its name comes a moment after its publisher


class SolePublishers:
    """Watches who publishes topics that have one publisher in every system.

    Without keys anybody on the graph may publish anything. A node cannot tell whose message it got, but it can count
    the publishers.

    Args:
        node: whose view of the graph counts.
        names: of the topics, as in :mod:`bid_ros.core.topics`.
    """

    def __init__(self, node: Node, names: Sequence[str]) -> None:
        self._node, self._names = node, tuple(names)

    def trouble(self) -> str:
        """Return one sentence that names who publishes a topic twice; empty: every topic has one publisher at most."""
        return next((self._sentence(name) for name in self._names if self.crowded(name)), "")

    def crowded(self, name: str) -> bool:
        """Whether a topic has more than one publisher. It takes microseconds."""
        return int(self._node.count_publishers(name)) > 1

    def _sentence(self, name: str) -> str:
        topic = self._node.resolve_topic_name(name)
        found = self._node.get_publishers_info_by_topic(topic)
        nodes = sorted(
            UNKNOWN if "UNKNOWN" in end.node_name else f"{end.node_namespace.rstrip('/')}/{end.node_name}"
            for end in found
        )
        return (
            f"{len(nodes)} nodes publish {topic}: {' and '.join(nodes)}; valid is one: end the others, then reset "
            "(a killed node counts for 20 s)"
        )

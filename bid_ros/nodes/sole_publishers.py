"""Topics that move the arm have one publisher each. A second one is a stranger, and a reason to stop."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from rclpy.node import Node

from bid_msgs.msg import Heartbeat
from bid_ros.core.senders import Senders, SoleSender
from bid_ros.core.topics import HEARTBEAT
from bid_ros.nodes.executor import FastExecutor

UNKNOWN: Final = "a node without a name"  # its name comes a moment after its publisher


class SolePublishers:
    """Watches who publishes topics that have one publisher in every system, and the heartbeats, one of each node.

    Without keys anybody on the graph may publish anything. A node cannot tell whose message it got, but it can count
    the publishers. On a busy computer the middleware names a publisher up to a second after its first message. So the
    numbers of the messages count, too: see :meth:`guarded`. All nodes publish heartbeats on one topic: there only the
    numbers tell two senders apart.

    Args:
        node: whose view of the graph counts.
        names: of the topics, as in :mod:`bid_ros.core.topics`.
    """

    def __init__(self, node: Node, names: Sequence[str]) -> None:
        self._node, self._senders = node, Senders()
        self._sole = {name: SoleSender() for name in names}
        self._guarded: set[str] = set()

    def guarded(self, name: str, take: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a callback that gives ``take`` the messages of one publisher only, in the executor's thread.

        Args:
            name: of the topic, one of those that are watched, for its only subscription.
            take: called with each message that counts on from the one before.

        Raises:
            ValueError: the topic is guarded already. Each of two subscriptions would make the other one's look old.
        """
        if name in self._guarded:
            raise ValueError(f"{name} is guarded already; valid is one subscription")
        self._guarded.add(name)
        sender = self._sole[name]

        def heard(message: Any) -> None:
            executor = self._node.executor
            number = executor.number if isinstance(executor, FastExecutor) else None
            if sender.admits(number, time.monotonic_ns()):
                take(message)

        return heard

    def beat(self, message: Heartbeat) -> None:
        """Take a heartbeat, in the thread that calls :meth:`trouble`."""
        self._senders.take(message.node, message.sequence, time.monotonic_ns())

    def trouble(self) -> str:
        """Return one sentence that names who publishes what another node publishes; empty: nobody does.

        It takes 7 microseconds a topic.
        """
        return next(map(self._sentence, filter(self._crowded, self._sole)), "") or self._imitated()

    def _crowded(self, name: str) -> bool:
        return self._sole[name].doubled(time.monotonic_ns()) or bool(self._node.count_publishers(name) > 1)

    def _imitated(self) -> str:
        """Return one sentence on a node whose heartbeats another one sends, too; empty: there is none."""
        if not (name := self._senders.doubled(time.monotonic_ns())):
            return ""
        known, publishers = self._senders.names(), Counter(self._publishers(HEARTBEAT))
        strange = [node for node, count in publishers.items() if count > 1 or node.rpartition("/")[2] not in known]
        topic, others = self._node.resolve_topic_name(HEARTBEAT), " or ".join(strange or publishers)
        return (
            f"2 nodes publish heartbeats of '{name}' on {topic}: it, and {others}; valid is one: end the other, then "
            "reset"
        )

    def _publishers(self, name: str) -> list[str]:
        found = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name(name))
        return sorted(
            UNKNOWN if "UNKNOWN" in end.node_name else f"{end.node_namespace.rstrip('/')}/{end.node_name}"
            for end in found
        )

    def _sentence(self, name: str) -> str:
        nodes = self._publishers(name)
        if len(nodes) < 2:
            nodes = [*nodes, UNKNOWN]
        return (
            f"{len(nodes)} nodes publish {self._node.resolve_topic_name(name)}: {' and '.join(nodes)}; valid is one: "
            "end the others, then reset (a killed node counts for 20 s)"
        )

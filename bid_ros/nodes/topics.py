"""The ROS classes and profiles of what ``core.topics`` names, and the publishers of it."""

import importlib
from typing import Any, Final

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSDurabilityPolicy, QoSPolicyKind, QoSProfile, QoSReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from bid_ros.core.errors import BidError
from bid_ros.core.topics import Qos, Topic
from bid_ros.system.parameters import QOS

POLICIES: Final = (
    QoSPolicyKind.DEPTH,
    QoSPolicyKind.RELIABILITY,
    QoSPolicyKind.DURABILITY,
    QoSPolicyKind.DEADLINE,
    QoSPolicyKind.LIFESPAN,
)
KINDS: Final = {"msg": "message", "srv": "service", "action": "action"}  # of ROS types, by the word in their names


def offered(qos: Qos) -> QoSProfile:
    """Return the ROS profile that a publisher offers."""
    found = profile(qos)
    for name, seconds in (("deadline", qos.deadline_s), ("lifespan", qos.lifespan_s)):
        if seconds is not None:
            setattr(found, name, Duration(seconds=seconds))
    return found


def profile(qos: Qos, depth: int | None = None) -> QoSProfile:
    """Return the ROS profile that a subscription asks for, with another ``depth`` if given.

    It asks for no deadline, and lets no message expire: its node judges both, and says what it refuses.
    """
    return QoSProfile(
        depth=depth or qos.depth,
        reliability=QoSReliabilityPolicy[qos.reliability.upper()],
        durability=QoSDurabilityPolicy[qos.durability.upper()],
    )


def message_type(name: str) -> Any:
    """Return the class of a message by its name, for example ``bid_msgs/msg/ArmStatus``.

    Raises:
        BidError: the type does not import.
    """
    return ros_type(name, "msg")


def ros_type(name: str, word: str) -> Any:
    """Return the class of a message, service or action by its name.

    Args:
        name: for example ``control_msgs/action/GripperCommand``.
        word: which of :data:`KINDS` it is.

    Raises:
        BidError: the type does not import.
    """
    package, _, short = name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{word}"), short)
    except (ImportError, AttributeError) as error:
        what = f"{KINDS[word]} type '{name}' does not import"
        raise BidError(f"{what}: {error}; valid is one of a sourced package") from error


def overridable(node: Node, name: str, end: str, number: int = 1) -> QoSOverridingOptions:
    """Return what makes parameters ``qos_overrides./TOPIC.publisher.POLICY`` and ``.subscription.`` hold.

    Only what is given is declared: to declare every policy of every topic took 0.26 s of CPU for 14 publishers.

    Args:
        node, name: the node, and its name of the topic.
        end: publisher or subscription.
        number: of the node's subscriptions of this topic; from the second on the parameter is ``.subscription_2.``.
    """
    own = str(number) if number > 1 else None
    begin = f"{QOS}.{node.resolve_topic_name(name)}.{end}{f'_{own}' if own else ''}."
    given = [kind for kind in POLICIES if f"{begin}{kind.name.lower()}" in node._parameter_overrides]
    return QoSOverridingOptions(given, entity_id=own)


class CountingPublisher(Publisher):
    """Counts what it publishes.

    Attributes:
        sent: messages so far.
    """

    sent = 0

    def publish(self, msg: Any) -> None:
        """Publish a message."""
        self.sent += 1
        super().publish(msg)


def publisher(node: Node, name: str, topic: Topic) -> Any:
    """Return what publishes a topic from a node, with the type and the quality of service of the table.

    Raises:
        BidError: the type does not import.
    """
    kind, qos = message_type(topic.type_name), offered(topic.qos)
    options = {"qos_overriding_options": overridable(node, name, "publisher")}
    return node.create_publisher(kind, name, qos, publisher_class=CountingPublisher, **options)

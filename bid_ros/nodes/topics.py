"""The ROS classes and profiles of what ``core.topics`` names, and the publishers of it."""

import importlib
from typing import Any, Final

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

from bid_ros.core.errors import BidError
from bid_ros.core.topics import Qos, Topic

KINDS: Final = {"msg": "message", "srv": "service", "action": "action"}  # of ROS types, by the word in their names


def profile(qos: Qos, depth: int | None = None) -> QoSProfile:
    """Return the ROS profile of a quality of service, with another ``depth`` if given."""
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
    kind, qos = message_type(topic.type_name), profile(topic.qos)
    return node.create_publisher(kind, name, qos, publisher_class=CountingPublisher)

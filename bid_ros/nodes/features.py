"""Subscriptions of every observed feature of a task, through the one extraction that data sets use too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import Image, JointState

from bid_msgs.msg import ArmStatus
from bid_ros.errors import BidError
from bid_ros.nodes.qos import IMAGE, STATE
from bid_ros.recording.features import extract
from bid_ros.recording.topics import feature_topic, recorded_topics
from bid_ros.stamps import stamp_ns
from bid_ros.task import Feature, Task

TYPES = {
    "sensor_msgs/msg/Image": Image,
    "sensor_msgs/msg/JointState": JointState,
    "geometry_msgs/msg/PoseStamped": PoseStamped,
    "bid_msgs/msg/ArmStatus": ArmStatus,
}


def subscribe_features(node: Node, task: Task, observe: Callable[[str, int, Any], None]) -> None:
    """Subscribe to the topic of each observed feature and hand over (name, stamp_ns, value).

    A message that does not hold what the task says is refused with a warning and changes nothing.
    """
    types = recorded_topics(task)
    for feature in task.observation:
        topic = feature_topic(feature)
        profile = IMAGE if feature.kind == "image" else STATE
        node.create_subscription(TYPES[types[topic]], topic, _handler(node, feature, observe), profile)


def _handler(node: Node, feature: Feature, observe: Callable[[str, int, Any], None]) -> Callable[[Any], None]:
    def handle(message: Any) -> None:
        try:
            value = extract(feature, message)
        except BidError as error:
            node.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        observe(feature.name, stamp_ns(message), value)

    return handle

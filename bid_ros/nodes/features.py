"""Subscribes to every observed feature of a task, with the same extraction as data sets."""

from collections.abc import Callable
from functools import partial
from typing import Any

from bid_ros.core.errors import BidError
from bid_ros.core.stamps import sample_ns
from bid_ros.core.task import Feature, Task
from bid_ros.core.topics import feature_topic, recorded_topics
from bid_ros.nodes.base import BidNode
from bid_ros.observing.features import extract


def subscribe_features(
    node: BidNode, task: Task, observe: Callable[[str, int, Any], None], depth: int | None = None
) -> None:
    """Subscribe to the topic of each observed feature and pass on (name, stamp_ns, value).

    A message that does not fit the task is refused with a warning. ``depth`` says how many may wait, by default few.
    """
    topics = recorded_topics(task)
    features: dict[str, list[Feature]] = {}
    for feature in task.observation:
        features.setdefault(feature_topic(feature), []).append(feature)
    for name, carried in features.items():
        node.subscribe(name, partial(_take, node, carried, observe), topics[name], depth=depth)


def _take(node: BidNode, features: list[Feature], observe: Callable[[str, int, Any], None], message: Any) -> None:
    stamp_ns = sample_ns(message, node.now_ns())
    for feature in features:
        try:
            value = extract(feature, message)
        except BidError as error:
            node.get_logger().warning(str(error), throttle_duration_sec=1.0)
        else:
            observe(feature.name, stamp_ns, value)

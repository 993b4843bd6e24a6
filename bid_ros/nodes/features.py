"""Subscribes to every observed feature of a task, with the same extraction as data sets."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.core.stamps import sample_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import Qos, feature_topic, recorded_topics
from bid_ros.nodes.base import BidNode
from bid_ros.observing.features import extract


def subscribe_features(
    node: BidNode,
    task: Task,
    observe: Callable[[str, int, Any], None],
    refuse: Callable[[str, str], None],
    lossless: Qos | None = None,
    heard: Mapping[str, Callable[[Any], None]] = MappingProxyType({}),
) -> None:
    """Subscribe to the topic of each observed feature and pass on (name, stamp_ns, value).

    Args:
        node, task: who observes, and what.
        observe: takes each sample.
        refuse: takes the feature's name and why a message does not fit the task.
        lossless: of publishers that lose nothing, as in a replay; None: as the topics of a live system.
        heard: by topic, what takes its messages before ``observe`` takes their samples.
    """
    topics = recorded_topics(task)
    features: dict[str, list[Feature]] = {}
    for feature in task.observation:
        features.setdefault(feature_topic(feature), []).append(feature)
    for name, carried in features.items():
        topic = topics[name] if lossless is None else replace(topics[name], qos=lossless)
        node.subscribe(name, partial(_take, node, carried, observe, refuse, heard.get(name)), topic)


def _take(
    node: BidNode,
    features: list[Feature],
    observe: Callable[[str, int, Any], None],
    refuse: Callable[[str, str], None],
    heard: Callable[[Any], None] | None,
    message: Any,
) -> None:
    stamp_ns = sample_ns(message, node.now_ns())
    if heard is not None:
        heard(message)
    for feature in features:
        try:
            value = extract(feature, message)
        except BidError as error:
            refuse(feature.name, str(error))
        else:
            observe(feature.name, stamp_ns, value)

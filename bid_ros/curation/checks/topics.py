"""Topics: those that the task needs, with their types and what their messages hold."""

from collections.abc import Iterator, Mapping
from typing import Final

from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.task import Feature, Task
from bid_ros.core.topics import (
    ARM_STATUS,
    EPISODE_EVENT,
    Topic,
    feature_topic,
    recorded_topics,
)
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.observing.features import extract
from bid_ros.recording.reader import BagReader
from bid_ros.recording.topic_types import wrong_type

SHOWN: Final = 3


def check_topics(reader: BagReader, task: Task | None) -> Iterator[Fault]:
    """Find topics that the task needs and the bag lacks, has with another type or size, or cannot be decoded."""
    types = reader.topics
    for name, kind in types.items():
        if " and " in kind:
            yield error("topics", f"{name} has the types {kind}; valid is one type for a topic")
    if not reader.has_definitions:
        text = "the bag holds no definitions of its messages, so those of ROS 2 Jazzy are taken"
        yield warning("topics", f"{text}; valid is a bag with definitions, as rosbag2 writes since ROS 2 Iron")
    if task is None:
        return
    known = recorded_topics(task)
    older = reader.is_older
    features = {feature.name: feature for feature in task.observation}
    topics: dict[str, list[Feature]] = {ARM_STATUS: [], EPISODE_EVENT: []}
    for feature in features.values():
        try:
            topics.setdefault(feature_topic(feature, older), []).append(feature)
        except TaskError as problem:
            yield error("topics", str(problem))
    for topic, wanted in topics.items():
        yield from _needed(reader, topic, known[topic], wanted)


def _needed(reader: BagReader, topic: str, about: Topic, wanted: list[Feature]) -> Iterator[Fault]:
    name = reader.recorded_name(topic)
    kind = reader.topics.get(name)
    if kind is None:
        yield error("topics", f"the bag lacks {topic} ({about.type_name}){_hint(reader.topics, topic, about)}")
    elif why := wrong_type(reader, topic, about):
        yield error("topics", why)
    elif not reader.counts[name]:
        yield error("topics", f"{name} has no message; valid is one or more")
    else:
        yield from _first(reader, topic, wanted)


def _hint(types: Mapping[str, str], topic: str, about: Topic) -> str:
    """Return which topics of the bag have the type that is needed, and how one is taken instead."""
    same = sorted(name for name, kind in types.items() if kind == about.type_name)
    if not same:
        return "; valid is a bag that holds it"
    more = f" and {len(same) - SHOWN} more" if len(same) > SHOWN else ""
    return f"; of that type it has {', '.join(same[:SHOWN])}{more}: take one with --remap {topic}:={same[0]}"


def _first(reader: BagReader, topic: str, wanted: list[Feature]) -> Iterator[Fault]:
    """Hold the first message against the task's features."""
    try:
        item = next(reader.messages([topic]), None)
        for feature in wanted:
            if item is not None:
                extract(feature, item.message)
    except BidError as problem:
        yield error("topics", str(problem))

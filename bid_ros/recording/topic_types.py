"""Holds the types of a bag's topics against those that a task needs."""

from collections.abc import Iterable
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.core.topics import COMPRESSED_IMAGE_TYPE, IMAGE_TYPE, Topic, recorded_topics
from bid_ros.recording.reader import BagReader

PACKED: Final = {IMAGE_TYPE: COMPRESSED_IMAGE_TYPE}


def wrong_type(reader: BagReader, topic: str, about: Topic) -> str:
    """Return a sentence about a topic that a bag has with another type; empty if it has the right one, or no such."""
    name = reader.recorded_name(topic)
    kind = reader.topics.get(name)
    if kind in (None, about.type_name, PACKED.get(about.type_name)):
        return ""
    return f"{name} has type {kind}; valid is {about.type_name}"


def check_types(reader: BagReader, task: Task, topics: Iterable[str]) -> None:
    """Raise RecordingError if a bag has one of a task's topics with another type."""
    known = recorded_topics(task)
    for topic in topics:
        if why := wrong_type(reader, topic, known[topic]):
            raise RecordingError(f"bag {reader.path}: {why}")

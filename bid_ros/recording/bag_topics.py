"""Topics of a bag: their types against those that a task needs, and the names that the recording gave them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, COMPRESSED_IMAGE_TYPE, DECISION, IMAGE_TYPE, Topic, recorded_topics
from bid_ros.recording.reader import BagReader
from bid_ros.recording.video_topics import VIDEO_TYPES

PACKED: Final = {IMAGE_TYPE: (COMPRESSED_IMAGE_TYPE, *VIDEO_TYPES)}


def wrong_type(reader: BagReader, topic: str, about: Topic) -> str:
    """Return a sentence about a topic that a bag has with another type; empty if it has the right one, or no such."""
    name = reader.recorded_name(topic)
    kind = reader.topics.get(name)
    if kind in (None, about.type_name, *PACKED.get(about.type_name, ())):
        return ""
    return f"{name} has type {kind}; valid is {about.type_name}"


def check_types(reader: BagReader, task: Task, topics: Iterable[str]) -> None:
    """Raise RecordingError if a bag has one of a task's topics with another type."""
    known = recorded_topics(task)
    for topic in topics:
        if why := wrong_type(reader, topic, known[topic]):
            raise RecordingError(f"bag {reader.path}: {why}")


def read_remapped(texts: Sequence[str]) -> Mapping[str, str]:
    """Return recorded names by topic, from texts such as ``camera/wrist/image:=/cam/image_raw``.

    Raises:
        RecordingError: a text has another form.
    """
    pairs = [text.split(":=") for text in texts]
    for text, pair in zip(texts, pairs, strict=True):
        if len(pair) != 2 or not pair[0] or not pair[1].startswith("/"):
            raise RecordingError(f"remapping '{text}' has an unknown form; valid is TOPIC:=/RECORDED/NAME")
    return {pair[0]: pair[1] for pair in pairs}


def origin_of(reader: BagReader) -> dict[str, str]:
    """Return the name of the robot, and the frame prefix, that a bag's messages have.

    Raises:
        RecordingError: the bag is damaged.
    """
    robot = next((str(item.message.robot) for item in reader.messages([ARM_STATUS, DECISION])), "")
    return {"robot": robot, "frame_prefix": reader.frame_prefix}

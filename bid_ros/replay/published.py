"""What a replay publishes of a bag, and under which names."""

from dataclasses import dataclass, replace
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    COMPRESSED_IMAGE_TYPE,
    DECISION,
    DIAGNOSTICS,
    HEARTBEAT,
    IMAGE_TYPE,
    POLICY_CHUNK,
    REPLAY_QOS,
    ROSOUT,
    Topic,
)
from bid_ros.recording.definitions import installed_types
from bid_ros.recording.reader import BagReader
from bid_ros.tasks.topics import system_topics

MADE_ANEW: Final = (DECISION, POLICY_CHUNK)
OF_THE_NODES: Final = (HEARTBEAT, DIAGNOSTICS, ROSOUT)
"""What every node says of itself: those of the replay do so too."""


@dataclass(frozen=True)
class Published:
    """A topic of a bag that is published again.

    Attributes:
        name: relative name, so that a replay never publishes where a live system listens.
        topic: its type and quality of service.
        packed: whether its images are compressed in the bag.
    """

    name: str
    topic: Topic
    packed: bool = False


def published_topics(reader: BagReader, task: Task) -> tuple[dict[str, Published], list[str]]:
    """Return the topics to publish by their recorded names, and a reason for each topic that is left out.

    Args:
        reader: the bag.
        task: whose topics keep their own names.

    Raises:
        RecordingError: a topic of an observation cannot be published; or the bag is one of ROS 1.
    """
    if not reader.is_ros2:
        raise RecordingError(f"bag {reader.path} is of ROS 1; valid for live nodes is one of ROS 2: leave out --nodes")
    known = system_topics(task)
    own = {reader.recorded_name(name): name for name in known}
    left: list[str] = []
    found: dict[str, Published] = {}
    for name, type_name in reader.topics.items():
        relative = own.get(name, name.lstrip("/"))
        if relative in (*MADE_ANEW, *OF_THE_NODES):
            continue
        if problem := _problem(reader, type_name):
            left.append(f"{name} is left out: {problem}")
            continue
        qos = known[relative].qos if relative in known else REPLAY_QOS
        # Nothing may be lost between two decisions, and a best-effort publisher loses what nobody takes at once.
        qos = replace(qos, depth=max(qos.depth, REPLAY_QOS.depth), reliability="reliable")
        packed = type_name == COMPRESSED_IMAGE_TYPE and relative in known
        found[name] = Published(relative.lstrip("/"), Topic(IMAGE_TYPE if packed else type_name, qos), packed)
    return found, left


def _problem(reader: BagReader, type_name: str) -> str:
    """Return why messages of a type cannot be published; empty if they can."""
    try:
        installed = installed_types(type_name)
    except RecordingError as error:
        return str(error)
    return "" if reader.defines(installed) else f"the recorded {type_name} differs from the installed one"

"""Names that a bag gives to the topics of a system, and whose messages it holds."""

from collections.abc import Mapping, Sequence

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS, DECISION
from bid_ros.recording.reader import BagReader


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

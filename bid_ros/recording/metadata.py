"""The ``metadata.yaml`` of a rosbag2 folder, version 9 (ROS 2 Jazzy)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.topics import Qos

VERSION: Final = 9
FOREVER: Final = {"sec": 9223372036, "nsec": 854775807}
METADATA_NAME: Final = "metadata.yaml"


@dataclass
class RecordedTopic:
    """One topic of a bag: the number of its channel, its type, the YAML text of its offered profiles, its messages."""

    channel: int
    name: str
    type_name: str
    type_hash: str
    qos: str
    count: int = 0


def qos_profiles(qos: Qos) -> list[dict[str, Any]]:
    """Return the offered profile in rosbag2's form, without deadline and lifespan."""
    return [
        {
            "history": qos.history,
            "depth": qos.depth,
            "reliability": qos.reliability,
            "durability": qos.durability,
            "deadline": dict(FOREVER),
            "lifespan": dict(FOREVER),
            "liveliness": "automatic",
            "liveliness_lease_duration": dict(FOREVER),
            "avoid_ros_namespace_conventions": False,
        }
    ]


def write_metadata(
    folder: Path,
    file_name: str,
    start_ns: int,
    end_ns: int,
    topics: Sequence[RecordedTopic],
    custom: Mapping[str, str],
) -> None:
    """Write ``metadata.yaml`` into ``folder``, atomically: a reader sees the old file or the new one."""
    count = sum(topic.count for topic in topics)
    duration = {"nanoseconds": end_ns - start_ns}
    start = {"nanoseconds_since_epoch": start_ns}
    information = {
        "version": VERSION,
        "storage_identifier": "mcap",
        "duration": duration,
        "starting_time": start,
        "message_count": count,
        "topics_with_message_count": [_topic(topic) for topic in topics],
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file_name],
        "files": [
            {"path": file_name, "starting_time": dict(start), "duration": dict(duration), "message_count": count}
        ],
        "custom_data": dict(custom) or None,
        "ros_distro": "jazzy",
    }
    # Two writers never share a bag, so a fixed temporary name is enough.
    temporary = folder / f".{METADATA_NAME}.tmp"
    temporary.write_text(yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False))
    temporary.replace(folder / METADATA_NAME)


def custom_data(folder: Path) -> dict[str, str]:
    """Return the custom data of the bag in ``folder``, empty if its metadata has none or cannot be read."""
    try:
        found = yaml.safe_load((folder / METADATA_NAME).read_text())["rosbag2_bagfile_information"]["custom_data"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _topic(topic: RecordedTopic) -> dict[str, Any]:
    profiles = yaml.safe_load(topic.qos) if topic.qos else None
    return {
        "topic_metadata": {
            "name": topic.name,
            "type": topic.type_name,
            "serialization_format": "cdr",
            "offered_qos_profiles": profiles if isinstance(profiles, list) else [],
            "type_description_hash": topic.type_hash,
        },
        "message_count": topic.count,
    }

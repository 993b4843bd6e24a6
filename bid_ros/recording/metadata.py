"""The ``metadata.yaml`` of a rosbag2 folder, version 9 (ROS 2 Jazzy)."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.topics import Qos
from bid_ros.recording.definitions import Definition

VERSION: Final = 9
FOREVER: Final = {"sec": 9223372036, "nsec": 854775807}
METADATA_NAME: Final = "metadata.yaml"


# The same text as that of the dumper in Python, in a tenth of the time; it needs libyaml.
DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@cache
def qos_text(qos: Qos) -> str:
    """Return the offered profile in rosbag2's form, as YAML."""
    profile = {
        **{name: getattr(qos, name) for name in ("depth", "reliability", "durability", "history")},
        "deadline": _duration(qos.deadline_s),
        "lifespan": _duration(qos.lifespan_s),
        "liveliness": "automatic",
        "liveliness_lease_duration": dict(FOREVER),
        "avoid_ros_namespace_conventions": False,
    }
    return yaml.safe_dump([profile], sort_keys=False).strip()


def _duration(seconds: float | None) -> dict[str, int]:
    if seconds is None:
        return dict(FOREVER)
    whole, rest = divmod(round(seconds * NANOSECONDS), NANOSECONDS)
    return {"sec": whole, "nsec": rest}


def topic_entry(name: str, definition: Definition, qos: str) -> dict[str, Any]:
    """Return the entry of a topic without messages; ``qos`` is the YAML text of its offered profiles."""
    profiles = yaml.safe_load(qos) if qos else None
    about = {
        "name": name,
        "type": definition.type_name,
        "serialization_format": "cdr",
        "offered_qos_profiles": profiles if isinstance(profiles, list) else [],
        "type_description_hash": definition.type_hash,
    }
    return {"topic_metadata": about, "message_count": 0}


def write_metadata(
    file: Path, start_ns: int, end_ns: int, topics: Sequence[dict[str, Any]], custom: Mapping[str, str]
) -> None:
    """Write ``metadata.yaml`` beside the bag's ``file``, atomically: a reader sees the old one or the new one."""
    about = {
        "starting_time": {"nanoseconds_since_epoch": start_ns},
        "duration": {"nanoseconds": end_ns - start_ns},
        "message_count": sum(topic["message_count"] for topic in topics),
    }
    information = {
        "version": VERSION,
        "storage_identifier": "mcap",
        **about,
        "topics_with_message_count": topics,
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file.name],
        "files": [{"path": file.name, **deepcopy(about)}],
        "custom_data": dict(custom) or None,
        "ros_distro": "jazzy",
    }
    # Two writers never share a bag, so a fixed temporary name is enough.
    temporary = file.with_name(f".{METADATA_NAME}.tmp")
    temporary.write_text(yaml.dump({"rosbag2_bagfile_information": information}, Dumper=DUMPER, sort_keys=False))
    temporary.replace(file.with_name(METADATA_NAME))


def custom_data(folder: Path) -> dict[str, str]:
    """Return the custom data of the bag in ``folder``, empty if its metadata has none or cannot be read."""
    try:
        found = yaml.safe_load((folder / METADATA_NAME).read_text())["rosbag2_bagfile_information"]["custom_data"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

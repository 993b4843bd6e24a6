"""Files of a bag and its metadata: rosbag2 folders (MCAP or sqlite3), single files of them, and ROS 1 bags."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import load_yaml
from bid_ros.core.topics import Qos
from bid_ros.recording.definitions import Definition
from bid_ros.recording.packing import PACKED, unpacked_name

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
    profiles = load_yaml(qos) if qos else None
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
    text = yaml.dump({"rosbag2_bagfile_information": information}, Dumper=DUMPER, sort_keys=False)
    # Two writers never share a bag, so a fixed temporary name is enough.
    replace_text(file.with_name(METADATA_NAME), text)


def custom_data(folder: Path) -> dict[str, str]:
    """Return the custom data of the bag in ``folder``, empty if its metadata has none or cannot be read."""
    try:
        found = load_yaml((folder / METADATA_NAME).read_text())["rosbag2_bagfile_information"]["custom_data"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def message_counts(folder: Path) -> dict[str, int]:
    """Return the number of messages by topic, as the metadata of the bag in ``folder`` say it; empty without them."""
    try:
        found = load_yaml((folder / METADATA_NAME).read_text())["rosbag2_bagfile_information"]
        topics = [
            (item["topic_metadata"]["name"], item["message_count"]) for item in found["topics_with_message_count"]
        ]
        return {str(name): int(count) for name, count in topics}
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return {}


MCAP: Final = ".mcap"
SQLITE: Final = ".db3"
ROS1: Final = ".bag"
SUFFIXES: Final = (MCAP, SQLITE, PACKED)  # of the files in a folder, those of bid_ros first
LOOSE: Final = (MCAP, SQLITE, ROS1)
KINDS: Final = "a rosbag2 folder, or a file that ends in .mcap, .db3 (or either with .zstd) or .bag"


def bag_files(path: str | Path) -> tuple[Path, ...]:
    """Return the files of a bag folder in order, or the one file that ``path`` names.

    Raises:
        RecordingError: there is no such folder or file, or it is no bag.
    """
    path = Path(path)
    if path.is_file():
        if not is_bag_file(path):
            raise RecordingError(f"{path} is no bag; valid is {KINDS}")
        return (path,)
    if not path.is_dir():
        raise RecordingError(f"bag {path} does not exist")
    found = _inside(path)
    if not found:
        raise RecordingError(f"bag {path} holds no .mcap file, and no .db3 file either")
    return tuple(sorted(found, key=lambda item: (len(item.name), item.name)))


def is_bag_file(path: Path) -> bool:
    """Whether a path names a file of a bag: in MCAP, in sqlite3 or of ROS 1, as it is or (but for ROS 1) packed."""
    return path.is_file() and Path(unpacked_name(path)).suffix in LOOSE[: 2 if path.suffix == PACKED else None]


def bags_inside(folder: Path) -> Iterator[Path]:
    """Yield the bags in a folder and below it: folders of rosbag2, and files that are a bag each.

    Hidden folders, such as the trash, are left out.
    """
    for place, folders, files in os.walk(folder):
        here = Path(place)
        loose = sorted(name for name in files if name[0] != "." and is_bag_file(here / name))
        if is_bag_folder(here) and (METADATA_NAME in files or _of_one_bag(loose)):
            yield here
            folders.clear()
            continue
        yield from (here / name for name in loose if name.removesuffix(PACKED) not in loose or PACKED not in name)
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def _of_one_bag(names: Sequence[str]) -> bool:
    """Whether files without metadata are the numbered files of one bag, ``NAME_0.mcap`` and so on."""
    matches = [re.fullmatch(r"(.*)_\d+", Path(unpacked_name(Path(name))).stem) for name in names]
    return len({match and match[1] for match in matches}) == 1 and matches[0] is not None


def is_bag_folder(path: Path) -> bool:
    """Whether a folder is one bag: it holds the files of a rosbag2, or their metadata."""
    return path.is_dir() and ((path / METADATA_NAME).is_file() or bool(_inside(path)))


def reads_as_folder(path: Path, files: tuple[Path, ...]) -> bool:
    """Whether a bag is opened through its metadata: one in sqlite3 files."""
    return (path / METADATA_NAME).is_file() and any(file.suffix == SQLITE for file in files)


def _inside(folder: Path) -> list[Path]:
    """Return the files of the first storage format that a folder holds."""
    for suffix in SUFFIXES:
        # A hidden file is left over from an interrupted repair.
        found = [item for item in folder.glob(f"*{suffix}") if not item.name.startswith(".") and item.is_file()]
        if found:
            return found
    return []


KEY: Final = "invented"
"""Key of a bag's custom data: a JSON list of ``TOPIC.FIELD``."""


def marked(fields: Iterable[str]) -> dict[str, str]:
    """Return the custom data that says which fields were invented; none if all were recorded."""
    names = sorted(set(fields))
    return {KEY: json.dumps(names)} if names else {}


def invented_fields(custom: Mapping[str, str]) -> tuple[str, ...]:
    """Return the invented fields, ``TOPIC.FIELD`` each, that the custom data of a bag names."""
    try:
        found = json.loads(custom.get(KEY, "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def invented_in(bags: Iterable[Path]) -> tuple[str, ...]:
    """Return the invented fields of bags, sorted."""
    return tuple(sorted({field for bag in bags for field in invented_fields(custom_data(bag))}))


def sentence(fields: Iterable[str]) -> str:
    """Return what a person should know of invented fields, which are at least one."""
    return f"made from a data set that does not hold them, so nobody recorded: {', '.join(fields)}"

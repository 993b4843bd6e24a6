"""Copies messages from bags into a new one, byte by byte: data, both times, definitions, quality of service."""

import os
import shutil
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import merge as merged
from pathlib import Path
from typing import Any, Final, Self

import yaml
from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Channel, Message, Schema
from zstandard import ZstdError

from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import load_yaml
from bid_ros.core.topics import TOPICS
from bid_ros.recording.files import MCAP, bag_files, custom_data
from bid_ros.recording.packing import PACKED, unpack_file, unpacked
from bid_ros.recording.repair import copy_whole, is_complete
from bid_ros.recording.storage import QOS, BagFile

LOG_TYPE: Final = TOPICS["/rosout"].type_name  # latched too, but lines of a log are no state
EVENT_TYPE: Final = TOPICS["episode/event"].type_name
INFO_TYPE: Final = "sensor_msgs/msg/CameraInfo"
STATIC: Final = "/tf_static"
STATIC_DEPTH: Final = 100  # of its publishers, each of which keeps one message
BROKEN: Final = (McapError, struct.error, ValueError, ZstdError, RuntimeError, KeyError)


@dataclass(frozen=True)
class Copied:
    """A message on its way: its channel, the definition of its type, and the record."""

    schema: Schema | None
    channel: Channel
    record: Message


class RawBag:
    """The raw messages of one MCAP bag, in order of their times of receipt. The bag is never changed.

    Raises:
        RecordingError: the bag is missing or damaged, or is not in MCAP files of ROS 2.
    """

    def __init__(self, bag: Path) -> None:
        self.bag = bag
        self.custom = custom_data(bag if bag.is_dir() else bag.parent)
        self._stack = ExitStack()
        self._readers: list[Any] = []
        self.channels: list[tuple[Schema | None, Channel]] = []
        try:
            with self._clear():
                for file in bag_files(bag):
                    self._open(file)
        except RecordingError:
            self._stack.close()
            raise

    def _open(self, file: Path) -> None:
        if file.suffix == PACKED:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bid_bag_"))
            file = unpack_file(file, Path(folder))
        if file.suffix != MCAP:
            raise RecordingError(
                f"bag {self.bag} is not in an {MCAP} file, so it cannot be edited; "
                f"rosbags-convert --src {self.bag} --dst NEW --dst-storage mcap makes one"
            )
        if not is_complete(file):
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bid_bag_"))
            copy_whole(file, Path(folder, file.name))
            file = Path(folder, file.name)
        reader = make_reader(self._stack.enter_context(file.open("rb")), validate_crcs=True)
        if reader.get_header().profile != "ros2":
            raise RecordingError(f"{file} is an MCAP file, but not a recording of ROS 2")
        summary = reader.get_summary()
        assert summary is not None  # the file is complete
        self._readers.append(reader)
        self.channels += [(summary.schemas.get(item.schema_id), item) for item in summary.channels.values()]

    def messages(
        self, topics: Sequence[str] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[Copied]:
        """Yield the messages at or after ``start_ns`` and before ``stop_ns``, one chunk in memory at a time."""
        parts = [reader.iter_messages(topics, start_ns, stop_ns) for reader in self._readers]
        with self._clear():
            for schema, channel, record in merged(*parts, key=lambda part: int(part[2].log_time)):
                yield Copied(schema, channel, replace(record, data=unpacked(record.data)))

    @contextmanager
    def _clear(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise RecordingError(
                f"bag {self.bag} is damaged ({reason}); bid episodes repair keeps what can be read"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def profiles_of(channel: Channel) -> list[dict[str, Any]]:
    """Return the offered quality of service of a channel, one entry for each publisher; empty if it has none."""
    return _profiles_in(channel.metadata.get(QOS, ""))


def _profiles_in(text: str) -> list[dict[str, Any]]:
    try:
        found = load_yaml(text or "[]")
    except yaml.YAMLError:
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def latched_depth(schema: Schema | None, channel: Channel) -> int:
    """Return how many of the last messages of a topic a late subscriber gets; 0: it is not latched.

    Events of episodes are latched, but belong to their episode: whoever cuts keeps those of the episode.
    """
    if schema is not None and schema.name in (LOG_TYPE, EVENT_TYPE):
        return 0
    if channel.topic == STATIC:
        return STATIC_DEPTH
    return _latched_in(channel.metadata.get(QOS, ""))


@lru_cache
def _latched_in(text: str) -> int:
    """Return the depth that profiles latch. Edits ask it of each message, and to read the text takes milliseconds."""
    latched = [item for item in _profiles_in(text) if str(item.get("durability")) in ("transient_local", "1")]
    return max((max(1, int(item.get("depth") or 1)) for item in latched), default=0)


class BagCopy:
    """A new bag folder that appears under its name when it is complete.

    Args:
        out: folder to create.
        sources: what is copied from; every topic of theirs is in the new bag, also without messages.
        custom: custom data of its metadata.

    Raises:
        RecordingError: the folder exists, or a topic has different types in the sources.
    """

    def __init__(self, out: Path, sources: Sequence[RawBag], custom: Mapping[str, str]) -> None:
        if out.exists():
            raise RecordingError(f"{out} exists already; valid is a new folder")
        self._out, self._custom = out, dict(custom)
        self._folder = out.with_name(f".{out.name}.{os.getpid()}.part")
        self._folder.mkdir(parents=True)
        try:
            self._file = BagFile(self._folder / f"{out.name}_0.mcap")
            self._register([item for source in sources for item in source.channels])
        except BaseException:
            self._discard()
            raise

    def _register(self, channels: Iterable[tuple[Schema | None, Channel]]) -> None:
        by_topic: dict[str, list[tuple[Schema | None, Channel]]] = {}
        for schema, channel in channels:
            by_topic.setdefault(channel.topic, []).append((schema, channel))
        for topic, found in by_topic.items():
            schema, first = found[0]
            types = sorted({item.name if item else "no type" for item, _ in found})
            if len(types) > 1:
                raise RecordingError(f"{topic} has the types {' and '.join(types)}; valid is one type for a topic")
            key = (schema.name, schema.encoding, schema.data) if schema else None
            about = {**first.metadata, QOS: self._profiles([channel for _, channel in found])}
            self._file.add_channel(topic, key, first.message_encoding, about)

    @staticmethod
    def _profiles(channels: Sequence[Channel]) -> str:
        """Return the quality of service that all channels of a topic offer: each text as it is, if there is one."""
        texts: list[str] = list(dict.fromkeys(channel.metadata.get(QOS, "") for channel in channels))
        if len(texts) == 1:
            return texts[0]
        every = [profile for channel in channels for profile in profiles_of(channel)]
        distinct = [item for number, item in enumerate(every) if item not in every[:number]]
        return str(yaml.safe_dump(distinct, sort_keys=False)).strip()

    def add(self, item: Copied, log_ns: int | None = None) -> None:
        """Copy a message. ``log_ns`` replaces its time of receipt; the time of publishing stays."""
        record = item.record
        at = record.log_time if log_ns is None else log_ns
        self._file.add_message(item.channel.topic, at, record.data, record.publish_time, record.sequence)

    def finish(self) -> int:
        """Give the bag its name. Return the number of its messages."""
        self._file.finish()
        self._file.write_metadata(self._custom)
        self._folder.rename(self._out)
        return sum(self._file.counts.values())

    def _discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder.exists():  # it was not finished
            self._file.abandon()
            self._discard()

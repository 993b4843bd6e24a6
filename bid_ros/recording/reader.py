"""Reads bags: messages in order of time, from complete and from broken recordings, of bid_ros and of others."""

import json
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Self

from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS, COMPRESSED, COMPRESSED_IMAGE_TYPE
from bid_ros.recording.files import MCAP, ROS1, bag_files, custom_data, reads_as_folder
from bid_ros.recording.packing import PACKED, unpack_file, unpacked
from bid_ros.recording.repair import copy_whole, is_complete
from bid_ros.recording.video_topics import codec_of_topic, pictures, video_below

NO_FIELDS: Final = "structure_needs_at_least_one_member"  # the field of a message without one
EMPTY_BYTES: Final = 8  # of a serialized message without fields, with its padding
HEADER_TYPE: Final = "std_msgs/msg/Header"


@dataclass(frozen=True)
class RawMessage:
    """A serialized message of a bag.

    Attributes:
        topic: its topic, as it was asked for; the recorded name if all topics were.
        type_name: its type.
        stamp_ns: time of receipt by the recorder, ns since the epoch.
        header_ns: time in its header, ns; None if the type has no header.
        data: the message as the middleware gave it.
    """

    topic: str
    type_name: str
    stamp_ns: int
    header_ns: int | None
    data: bytes


@dataclass(frozen=True)
class BagMessage:
    """A message of a bag.

    Attributes:
        topic, stamp_ns: as of a :class:`RawMessage`.
        message: object with the fields of the type; arrays of numbers are NumPy arrays.
    """

    topic: str
    stamp_ns: int
    message: Any


class BagReader:
    """A bag, decoded with the definitions inside it. It needs no ROS installation.

    It reads rosbag2 bags in MCAP and in sqlite3, compressed or not, and ROS 1 bags; those without definitions (sqlite3,
    before Iron) with those of ROS 2 Jazzy's own packages.

    A bag holds full names of topics. A relative name (``arm/status``) is looked for in the namespace that the recorder
    wrote into the metadata, in a bag of another recorder by how its names end. Where only ``<topic>/compressed`` has
    images, or a video below the topic whatever its name, the name of the raw ones finds them, and
    :func:`bid_ros.cameras.image.decode_image` takes all.

    A file without an index (its recorder was killed, or still runs) is read from a repaired copy, up to the last
    complete message. The bag itself is never changed.

    Attributes:
        path: the bag.
        was_complete: whether its recorder closed it.
        has_definitions: whether it holds the definitions of its messages.

    Args:
        path: bag folder, or one file.
        remapped: recorded names by the relative names that they stand for, beside those that the metadata gives.

    Raises:
        RecordingError: the bag is missing, is not a recording, or is damaged.
    """

    def __init__(self, path: str | Path, remapped: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.was_complete = self.has_definitions = True
        self._custom = custom_data(self.path if self.path.is_dir() else self.path.parent)
        self._remapped = dict(remapped or {})
        self._stack = ExitStack()
        try:
            self._reader = self._open(bag_files(self.path))
        except RecordingError:
            self._stack.close()
            raise
        # Damaged bytes can make the decoders of a foreign format raise anything.
        except Exception as error:
            self._stack.close()
            raise self._damaged(error) from error

    def _open(self, files: tuple[Path, ...]) -> Any:
        if empty := [file for file in files if not file.stat().st_size]:
            raise RecordingError(f"bag {empty[0]} is empty: it has 0 bytes, so nothing was recorded")
        if reads_as_folder(self.path, files):
            return self._entered([self.path])
        readable = []
        for each in files:
            file = unpack_file(each, self._folder()) if each.suffix == PACKED else each
            if file.suffix == MCAP and not is_complete(file):
                self.was_complete = False
                readable.append(self._folder() / file.name)
                copy_whole(file, readable[-1])
            else:
                readable.append(file)
        return self._entered(readable)

    def _folder(self) -> Path:
        """Return a new temporary folder, which stays until the bag is closed."""
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bid_bag_")))

    def _entered(self, paths: list[Path]) -> Any:
        try:
            return self._stack.enter_context(AnyReader(paths))
        except AnyReaderError as error:
            if "type definitions" not in str(error):
                raise
        self.has_definitions = False
        return self._stack.enter_context(AnyReader(paths, default_typestore=get_typestore(Stores.ROS2_JAZZY)))

    @property
    def topics(self) -> dict[str, str]:
        """Type name by topic; several types are joined by " and "."""
        types: dict[str, dict[str, None]] = {}
        for item in self._reader.connections:
            types.setdefault(item.topic, {})[item.msgtype] = None
        return {name: " and ".join(sorted(found)) for name, found in sorted(types.items())}

    @property
    def span_ns(self) -> tuple[int, int]:
        """Times of receipt of the first message and of the last; (0, 0) of a bag without messages."""
        count = self._reader.message_count
        return (self._reader.start_time, self._reader.end_time - 1) if count else (0, 0)

    @property
    def custom(self) -> dict[str, str]:
        """The custom data of the bag's metadata."""
        return dict(self._custom)

    def says(self, topic: str, field: str) -> bool:
        """Whether the messages of a topic have a field; True if the bag has no such topic."""
        known = self._reader.typestore.fielddefs.get(self.topics.get(self.recorded_name(topic)))
        return known is None or field in {name for name, _ in known[1]}

    def defines(self, types: Mapping[str, Any]) -> bool:
        """Whether it has these types with these fields, as ``definitions.installed_types`` gives them."""
        known = self._reader.typestore.fielddefs
        return all(name in known and known[name][1] == fields for name, fields in types.items())

    @property
    def is_ros2(self) -> bool:
        """Whether its messages are serialized as ROS 2 does."""
        return bool(self._reader.is2)

    @property
    def is_older(self) -> bool:
        """Whether pose and joints have topics of their own: in bags of an earlier version, and of other recorders."""
        return self.recorded_name(ARM_STATUS) not in self.topics or not self.says(ARM_STATUS, "tool")

    @property
    def counts(self) -> dict[str, int]:
        """Messages by topic."""
        return {name: info.msgcount for name, info in self._reader.topics.items()}

    @property
    def frame_prefix(self) -> str:
        """What precedes the name of every frame of the recorded system."""
        return self._custom.get("frame_prefix", "")

    def recorded_name(self, topic: str) -> str:
        """Return the full name of a topic in this bag, also if it holds no such topic.

        Raises:
            RecordingError: ``topic`` is relative, and several systems of this bag have one.
        """
        name = self._full_name(topic)
        if self.counts.get(name):
            return name
        # A recorder may know the raw images without having got one, beside compressed ones.
        packed = self._full_name(topic + COMPRESSED)
        there = self.topics.get(packed) == COMPRESSED_IMAGE_TYPE
        if there and (name not in self.topics or self.counts.get(packed)):
            return packed
        return video_below(self, name, "" if "namespace" in self._custom else topic) or name

    def _full_name(self, topic: str) -> str:
        remapped: dict[str, str] = json.loads(self._custom.get("remapped", "{}")) | self._remapped
        if topic.startswith("/") or topic in remapped:
            return remapped.get(topic, topic)
        if "namespace" in self._custom:
            return f"{self._custom['namespace'].rstrip('/')}/{topic}"
        found = [name for name in self.topics if name.endswith(f"/{topic}")] or [f"/{topic}"]
        if f"/{topic}" not in found and len(found) > 1:
            raise RecordingError(f"bag {self.path} holds {' and '.join(sorted(found))}; valid is a bag of one system")
        return f"/{topic}" if f"/{topic}" in found else found[0]

    def messages(
        self, topics: Iterable[str] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Yield the messages in the order of their ``stamp_ns``. Of a topic that is a video: its pictures.

        Args:
            topics: only these (default: all), by full or relative name; one that the bag does not have yields
                nothing.
            start_ns: only messages at or after this time of receipt.
            stop_ns: only messages before this time of receipt.

        Raises:
            RecordingError: at the first message that cannot be read, or as :meth:`recorded_name`.
        """
        asked = [] if topics is None else list(topics)
        videos = {topic: codec for topic in asked if (codec := codec_of_topic(self, topic))}
        others = topics if topics is None else [topic for topic in asked if topic not in videos]
        plain = (
            BagMessage(item.topic, item.stamp_ns, self.decode(item)) for item in self.raw(others, start_ns, stop_ns)
        )
        shown = (
            (BagMessage(topic, *each) for each in pictures(self, topic, codec, start_ns, stop_ns))
            for topic, codec in videos.items()
        )
        yield from merge(plain, *shown, key=attrgetter("stamp_ns")) if videos else plain

    def raw(
        self, topics: Iterable[str] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[RawMessage]:
        """Yield the messages as :meth:`messages`, but serialized: the memory holds one chunk of the bag at a time."""
        names = {self.recorded_name(topic): topic for topic in (self.topics if topics is None else topics)}
        connections = [item for item in self._reader.connections if item.topic in names]
        if not connections:
            return
        headers = {item.msgtype: self._has_header(item.msgtype) for item in connections}
        try:
            for item, stamp, data in self._reader.messages(connections, start_ns, stop_ns):
                data = unpacked(data) if self._reader.is2 else data
                header = self._header_ns(data) if headers[item.msgtype] else None
                yield RawMessage(names[item.topic], item.msgtype, stamp, header, data)
        except Exception as error:
            raise self._damaged(error) from error

    def decode(self, item: RawMessage) -> Any:
        """Return the message of raw bytes. Raises RecordingError if they do not fit the definition or there is none."""
        known = self._reader.typestore.fielddefs.get(item.type_name)
        # A definition without fields is that of an empty message, which is one byte after the mark of four.
        without = known is not None and {name for name, _ in known[1]} <= {NO_FIELDS}
        if known is None or (without and len(item.data) > EMPTY_BYTES):
            raise RecordingError(
                f"bag {self.path} has no definition of {item.type_name}, the type of {item.topic}; "
                "valid is a bag that holds the definitions of its types, as rosbag2 writes since ROS 2 Iron"
            )
        try:
            return self._reader.deserialize(item.data, item.type_name)
        except Exception as error:
            raise self._damaged(error) from error

    def _has_header(self, type_name: str) -> bool:
        known = self._reader.typestore.fielddefs.get(type_name)
        return bool(known and known[1] and known[1][0][1][1] == HEADER_TYPE)

    def _header_ns(self, data: bytes) -> int | None:
        """Return the stamp at the begin of a message that starts with a header. It costs no decoding of an image."""
        at, order = (4, "<" if data[1] & 1 else ">") if self._reader.is2 else (4, "<")  # CDR's mark, or ROS 1's seq
        try:
            seconds, nanoseconds = struct.unpack_from(f"{order}iI", data, at)
        except struct.error:
            return None
        return int(seconds) * NANOSECONDS + int(nanoseconds)

    def close(self) -> None:
        """Close the files and remove temporary copies."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _damaged(self, error: BaseException) -> RecordingError:
        reason = " ".join(str(error).split()).rstrip(".")
        if self.path.suffix == ROS1:
            return RecordingError(f"bag {self.path} cannot be read ({reason}); rosbag reindex repairs a bag of ROS 1")
        said = f"bag {self.path} is damaged ({reason}); "
        with suppress(RecordingError):
            if [file.suffix for file in bag_files(self.path)] == [MCAP]:
                return RecordingError(f"{said}bid episodes repair keeps what can be read")
        return RecordingError(f"{said}valid is a whole one: only a bag of one {MCAP} file can be repaired")

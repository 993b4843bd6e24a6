"""The queue of messages to write, and the MCAP file that any reader can open after every commit."""

import io
import os
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal

from mcap.data_stream import RecordBuilder
from mcap.records import ChunkIndex, DataEnd, Footer
from mcap.writer import MCAP0_MAGIC, CompressionType, Writer

from bid_ros.recording.definitions import Definition
from bid_ros.recording.files import topic_entry, write_metadata


@dataclass(frozen=True)
class Pending:
    """A serialized message that waits to be written."""

    topic: str
    stamp_ns: int
    data: bytes


class Backlog:
    """Messages between the callbacks and the file, at most ``limit_bytes`` of them. Not thread-safe.

    Expendable messages (images) may fill half of it. The oldest of them make room for other messages: a lost frame
    costs less than a lost decision or a lost end of an episode.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept: deque[Pending] = deque()
        self._expendable: deque[Pending] = deque()
        self._expendable_bytes = 0
        self.size_bytes = 0
        self.dropped: Counter[str] = Counter()

    def offer(self, item: Pending, expendable: bool) -> bool:
        """Append a message. Without room, return False and count it in ``dropped``."""
        size = len(item.data)
        while self._expendable and not expendable and self.size_bytes + size > self._limit:
            oldest = self._expendable.popleft()
            self.size_bytes -= len(oldest.data)
            self._expendable_bytes -= len(oldest.data)
            self.dropped[oldest.topic] += 1
        too_many = expendable and self._expendable_bytes + size > self._limit // 2
        if too_many or self.size_bytes + size > self._limit:
            self.dropped[item.topic] += 1
            return False
        (self._expendable if expendable else self._kept).append(item)
        self.size_bytes += size
        self._expendable_bytes += size if expendable else 0
        return True

    def drain(self) -> list[Pending]:
        """Remove and return everything, in the order of the stamps."""
        items = sorted([*self._kept, *self._expendable], key=attrgetter("stamp_ns"))
        self._kept.clear()
        self._expendable.clear()
        self.size_bytes = self._expendable_bytes = 0
        return items


QOS: Final = "offered_qos_profiles"  # keys of the metadata of a topic
TYPE_HASH: Final = "topic_type_hash"
Schema = tuple[str, str, bytes]  # name of a type, encoding and text of its definition
Compression = Literal["none", "lz4", "zstd"]
CHUNK_BYTES: Final = 1 << 20
COMMIT_BYTES: Final = 2 * CHUNK_BYTES  # of messages; more are committed in between
# What is written until a commit stays in memory, or it would overwrite the end that the last commit has left.
BUFFER_BYTES: Final = 8 * CHUNK_BYTES


def _end_without_index() -> bytes:
    builder = RecordBuilder()
    DataEnd(data_section_crc=0).write(builder)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(builder)
    return bytes(builder.end()) + bytes(MCAP0_MAGIC)


PROVISIONAL_END: Final = _end_without_index()
"""The 50 bytes that end a valid MCAP file which has no index."""


class _Stream(io.BufferedWriter):
    """Output of the mcap writer. It passes up to ``BUFFER_BYTES`` on only at a commit, so with one system call."""

    commit = io.BufferedWriter.flush

    def flush(self) -> None:
        """Wait for the commit."""


class _PackedIndex:
    """Index of a chunk as it will stand in the file. The package's own object takes six times as much memory.

    Five chunks a second for hours would make a recorder grow by half a megabyte a minute.
    """

    __slots__ = ("_record",)

    def __init__(self, index: ChunkIndex) -> None:
        builder = RecordBuilder()
        index.write(builder)
        self._record = bytes(builder.end())

    def write(self, stream: RecordBuilder) -> None:
        """Write it, as the package's own does."""
        stream.write(self._record)


class BagFile:
    """The MCAP file of a bag, and the content of its ``metadata.yaml``. Not thread-safe.

    The ``mcap`` package writes the file. Unlike the writer of ``rosbags`` it can end a chunk on demand. Each commit
    also ends the file provisionally, and the next commit overwrites that end. So a recording survives the death of its
    recorder. A commit that is torn loses the chunk it wrote, and nothing before it.

    Args:
        path: file to create; its folder must exist.
        compression: of the chunks.

    Raises:
        OSError: the file exists or cannot be created; so do :meth:`commit` and :meth:`finish` when the disk fails.
    """

    def __init__(self, path: Path, compression: Compression = "zstd") -> None:
        self.path = path
        self._stream = _Stream(io.FileIO(path, "x"), BUFFER_BYTES)
        kinds = {"none": CompressionType.NONE, "lz4": CompressionType.LZ4, "zstd": CompressionType.ZSTD}
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES, compression=kinds[compression])
        # The package offers no other way to them. In a version that keeps them elsewhere they stay as they are.
        self._indices: list[Any] = getattr(self._writer, "_Writer__chunk_indices", [])
        self._packed = 0
        self._schemas: dict[Schema | None, int] = {None: 0}
        self._channels: dict[str, int] = {}
        self._topics: dict[str, dict[str, Any]] = {}
        self._start_ns: int | None = None
        self._end_ns = 0
        self._writer.start(profile="ros2", library="bid_ros")
        self.commit()

    @property
    def counts(self) -> dict[str, int]:
        """Messages added by topic."""
        return {name: topic["message_count"] for name, topic in self._topics.items()}

    def add_topic(self, name: str, definition: Definition, qos: str) -> None:
        """Register a topic; ``qos`` is the YAML text of its offered profiles."""
        schema = (definition.type_name, "ros2msg", definition.text.encode())
        self.add_channel(name, schema, "cdr", {QOS: qos, TYPE_HASH: definition.type_hash})

    def add_channel(self, name: str, schema: Schema | None, encoding: str, metadata: Mapping[str, str]) -> None:
        """Register a topic as another file has it: its schema, if it has one, its encoding and its metadata."""
        if schema is not None and schema not in self._schemas:
            self._schemas[schema] = self._writer.register_schema(*schema)
        number = self._schemas[schema]
        self._channels[name] = self._writer.register_channel(name, encoding, number, dict(metadata))
        definition = Definition(schema[0] if schema else "no type", "", metadata.get(TYPE_HASH, ""))
        self._topics[name] = topic_entry(name, definition, metadata.get(QOS, ""))

    def add_message(
        self, topic: str, stamp_ns: int, data: bytes, publish_ns: int | None = None, sequence: int | None = None
    ) -> None:
        """Append a serialized message (CDR) of a registered topic. It is safe after the next :meth:`commit`.

        Args:
            topic, stamp_ns, data: the message, and its time of receipt.
            publish_ns: its time of publishing, ns; None: that of receipt.
            sequence: its number; None: the next one of the topic.
        """
        entry = self._topics[topic]
        number = entry["message_count"] if sequence is None else sequence
        sent = stamp_ns if publish_ns is None else publish_ns
        self._writer.add_message(self._channels[topic], stamp_ns, data, sent, sequence=number)
        entry["message_count"] += 1
        self._start_ns = stamp_ns if self._start_ns is None else min(self._start_ns, stamp_ns)
        self._end_ns = max(self._end_ns, stamp_ns)

    def commit(self) -> None:
        """Pass everything added so far to the operating system, and leave a valid file."""
        self._writer.flush()
        self._stream.write(PROVISIONAL_END)
        self._stream.commit()
        self._stream.seek(-len(PROVISIONAL_END), os.SEEK_CUR)
        self._indices[self._packed :] = map(_PackedIndex, self._indices[self._packed :])
        self._packed = len(self._indices)

    def sync(self) -> None:
        """Wait until everything committed is on the disk, so that it survives a loss of power too."""
        os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """Write index and footer and close the file."""
        self._writer.finish()
        self._stream.commit()
        self._stream.truncate()
        self.sync()
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as the last commit left it."""
        self._stream.close()

    def write_metadata(self, custom: Mapping[str, str], path: Path | None = None) -> None:
        """Write the ``metadata.yaml`` beside the file, which is or will be at ``path`` (default: where it is)."""
        write_metadata(path or self.path, self._start_ns or 0, self._end_ns, list(self._topics.values()), custom)

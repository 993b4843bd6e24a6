"""One MCAP file that any reader can open after every commit, even if the process dies before it is closed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from mcap.data_stream import RecordBuilder
from mcap.records import DataEnd, Footer
from mcap.writer import MCAP0_MAGIC, CompressionType, Writer

from bid_ros.recording.definitions import Definition
from bid_ros.recording.metadata import RecordedTopic, write_metadata

Compression = Literal["none", "lz4", "zstd"]
CHUNK_BYTES: Final = 1 << 20


def _end_without_index() -> bytes:
    builder = RecordBuilder()
    DataEnd(data_section_crc=0).write(builder)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(builder)
    return bytes(builder.end()) + bytes(MCAP0_MAGIC)


PROVISIONAL_END: Final = _end_without_index()
"""The 50 bytes that end a valid MCAP file which has no index."""


class _Stream:
    """Output of the mcap writer: collects bytes and writes them with one system call per flush.

    Each flush ends the file provisionally; the next flush overwrites that end. So the file is complete at every time
    except inside that call. A torn call loses the chunk it wrote, and nothing before it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._committed = 0
        self._pending = bytearray()

    def write(self, data: bytes) -> int:
        self._pending += data
        return len(data)

    def tell(self) -> int:
        return self._committed + len(self._pending)

    def flush(self) -> None:
        self._commit(PROVISIONAL_END)

    def finish(self) -> None:
        self._commit(b"")
        os.ftruncate(self._file, self._committed)
        self.sync()
        self.close()

    def sync(self) -> None:
        os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _commit(self, end: bytes) -> None:
        data = memoryview(bytes(self._pending) + end)
        offset = self._committed
        while data:
            written = os.pwrite(self._file, data, offset)
            data, offset = data[written:], offset + written
        self._committed += len(self._pending)
        self._pending.clear()


class BagFile:
    """The MCAP file of a bag, and the content of its ``metadata.yaml``. Not thread-safe.

    The ``mcap`` package writes the file. Unlike the writer of ``rosbags`` it can end a chunk on demand. So a recording
    survives the death of its recorder.

    Args:
        path: file to create; its folder must exist.
        compression: of the chunks.

    Raises:
        OSError: the file exists or cannot be created; so do :meth:`commit` and :meth:`finish` when the disk fails.
    """

    def __init__(self, path: Path, compression: Compression = "zstd") -> None:
        self.path = path
        self._stream = _Stream(path)
        kinds = {"none": CompressionType.NONE, "lz4": CompressionType.LZ4, "zstd": CompressionType.ZSTD}
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES, compression=kinds[compression])
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, RecordedTopic] = {}
        self._start_ns: int | None = None
        self._end_ns = 0
        self._writer.start(profile="ros2", library="bid_ros")
        self.commit()

    @property
    def counts(self) -> dict[str, int]:
        """Messages added by topic."""
        return {name: channel.count for name, channel in self._channels.items()}

    def add_topic(self, name: str, definition: Definition, qos: str) -> None:
        """Register a topic; ``qos`` is the YAML text of its offered profiles."""
        if definition.type_name not in self._schemas:
            self._schemas[definition.type_name] = self._writer.register_schema(
                definition.type_name, "ros2msg", definition.text.encode()
            )
        metadata = {"offered_qos_profiles": qos, "topic_type_hash": definition.type_hash}
        schema = self._schemas[definition.type_name]
        number = self._writer.register_channel(name, "cdr", schema, metadata)
        self._channels[name] = RecordedTopic(number, name, definition.type_name, definition.type_hash, qos)

    def add_message(self, topic: str, stamp_ns: int, data: bytes) -> None:
        """Append a serialized message (CDR) of a registered topic. It is safe after the next :meth:`commit`."""
        channel = self._channels[topic]
        self._writer.add_message(channel.channel, stamp_ns, data, stamp_ns, sequence=channel.count)
        channel.count += 1
        self._start_ns = stamp_ns if self._start_ns is None else min(self._start_ns, stamp_ns)
        self._end_ns = max(self._end_ns, stamp_ns)

    def commit(self) -> None:
        """Pass everything added so far to the operating system, and leave a valid file."""
        self._writer.flush()

    def sync(self) -> None:
        """Wait until everything committed is on the disk, so that it survives a loss of power too."""
        self._stream.sync()

    def finish(self) -> None:
        """Write index and footer and close the file."""
        self._writer.finish()
        self._stream.finish()

    def abandon(self) -> None:
        """Close the file as the last commit left it."""
        self._stream.close()

    def write_metadata(self, custom: Mapping[str, str], path: Path | None = None) -> None:
        """Write the ``metadata.yaml`` beside the file, which is or will be at ``path`` (default: where it is)."""
        topics = list(self._channels.values())
        path = path or self.path
        write_metadata(path.parent, path.name, self._start_ns or 0, self._end_ns, topics, custom)

"""Repairs bags whose recorder was killed inside a write, or whose disk lost a part."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from mcap.exceptions import EndOfFile, McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import MCAP0_MAGIC
from zstandard import ZstdError

from bid_ros.core.errors import RecordingError
from bid_ros.recording.files import MCAP, METADATA_NAME, bag_files, custom_data
from bid_ros.recording.packing import unpacked
from bid_ros.recording.storage import QOS, TYPE_HASH, BagFile

# Errors of the mcap package on damaged bytes: struct, decompression, text, sizes.
DAMAGE: Final = (McapError, ValueError, struct.error, ZstdError, RuntimeError, MemoryError, IndexError)
FOOTER_BYTES: Final = 9 + 20
END_BYTES: Final = FOOTER_BYTES + len(MCAP0_MAGIC)


@dataclass(frozen=True)
class RepairReport:
    """Result of a repair: kept messages, chunks that could not be read, bytes cut off the end."""

    messages: int
    damaged_chunks: int
    cut_bytes: int


def is_complete(file: Path) -> bool:
    """Whether an MCAP file was closed properly: it ends with a footer that points to an index."""
    with file.open("rb") as stream:
        if stream.seek(0, os.SEEK_END) < 2 * len(MCAP0_MAGIC) + FOOTER_BYTES:
            return False
        stream.seek(-END_BYTES, os.SEEK_END)
        end = stream.read()
    opcode, length, summary_start = struct.unpack_from("<BQQ", end)
    return end.endswith(MCAP0_MAGIC) and opcode == Opcode.FOOTER and length == 20 and summary_start > 0


def repair_bag(path: str | Path) -> RepairReport:
    """Restore index, footer and ``metadata.yaml`` of a bag, up to its last complete message.

    The repaired file replaces the damaged one atomically: an interrupted repair leaves the bag as it was. A bag
    without a fault is not changed. Do not use it on a bag that is still being recorded.

    Raises:
        RecordingError: the bag does not exist, is not an MCAP recording of ROS 2, or consists of several files.
    """
    files = bag_files(path)
    if len(files) != 1:
        raise RecordingError(f"bag {path} has {len(files)} files; only a bag of one file can be repaired")
    file = files[0]
    if file.suffix != MCAP:
        raise RecordingError(f"{file} cannot be repaired; valid is a bag in an {MCAP} file")
    temporary = file.with_name(f".{file.name}.repair")
    try:
        temporary.unlink(missing_ok=True)
        whole = is_complete(file) and (file.parent / METADATA_NAME).exists()
        bag, report = copy_whole(file, temporary)
        if not whole or report.damaged_chunks:
            custom = custom_data(file.parent)
            temporary.replace(file)
            bag.write_metadata(custom, file)
    except OSError as error:
        raise RecordingError(f"bag {path} cannot be repaired: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return report


def copy_whole(source: Path, target: Path) -> tuple[BagFile, RepairReport]:
    """Write every complete message of an MCAP file to the new file ``target``, which has an index.

    Raises:
        RecordingError: ``source`` is not an MCAP recording of ROS 2.
    """
    bag = BagFile(target)
    damaged = 0
    schemas: dict[int, Schema] = {}
    topics: dict[int, str] = {}
    try:
        with source.open("rb") as stream:
            good = 0
            for records in _groups(_WholeReads(stream), source):
                damaged += records is None
                for record in records or ():
                    _add(bag, record, schemas, topics)
                good = stream.tell()
            cut = max(0, source.stat().st_size - good - len(MCAP0_MAGIC))
        bag.finish()
    finally:
        bag.abandon()
    return bag, RepairReport(sum(bag.counts.values()), damaged, cut)


def _add(bag: BagFile, record: Any, schemas: dict[int, Any], topics: dict[int, str]) -> None:
    if isinstance(record, Schema):
        schemas[record.id] = record
    elif isinstance(record, Channel) and record.id not in topics and record.schema_id in schemas:
        topics[record.id] = record.topic
        if record.topic not in bag.counts:
            schema = schemas[record.schema_id]
            if schema.encoding != "ros2msg":
                raise RecordingError(f"{record.topic} is defined in '{schema.encoding}'; only ros2msg can be repaired")
            key = (schema.name, schema.encoding, schema.data)
            bag.add_channel(record.topic, key, "cdr", {QOS: "", TYPE_HASH: "", **record.metadata})
    elif isinstance(record, Message) and record.channel_id in topics:
        bag.add_message(topics[record.channel_id], record.log_time, unpacked(record.data))


def _groups(stream: _WholeReads, source: Path) -> Iterator[list[Any] | None]:
    """Yield the records of each chunk (None for a damaged one) or record, until the end or the first broken one."""
    records = iter(StreamReader(stream, emit_chunks=True).records)
    try:
        header = next(records)
    except (*DAMAGE, StopIteration) as error:
        raise RecordingError(f"{source} is not an MCAP recording") from error
    if getattr(header, "profile", "") != "ros2":
        raise RecordingError(f"{source} is an MCAP file, but not a recording of ROS 2")
    while True:
        try:
            record = next(records)
        except (*DAMAGE, StopIteration):
            return
        yield _unpacked(record)


def _unpacked(record: Any) -> list[Any] | None:
    if not isinstance(record, Chunk):
        return [record]
    try:
        return list(breakup_chunk(record, validate_crc=True))
    except DAMAGE:
        return None


class _WholeReads:
    """A file whose reads return all requested bytes or raise ``EndOfFile``, so that a cut record is noticed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._size = stream, os.fstat(stream.fileno()).st_size

    def read(self, length: int) -> bytes:
        if length > self._size - self._stream.tell():
            raise EndOfFile
        return self._stream.read(length)

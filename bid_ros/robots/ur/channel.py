"""Records in shared memory: one process writes, the other reads the newest, and neither waits."""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Any, Final

# A reader that meets a half-written record tries again. If the writer is held up there, it loses one record.
TRIES: Final = 8
CHECK: Final = struct.Struct("<I")


class Channel:
    """One record in shared memory. A checksum rejects a half-written one.

    Args:
        memory: the memory.
        offset: first byte of the record.
        layout: layout of the record in the notation of :mod:`struct`, little endian.
    """

    def __init__(self, memory: mmap.mmap, offset: int, layout: str) -> None:
        self._record = struct.Struct("<Q" + layout)
        self._memory = memory
        self._begin, self._end = offset, offset + CHECK.size + self._record.size
        self._count = 0
        self._newest: tuple[Any, ...] | None = None

    @property
    def end(self) -> int:
        """First byte after the record."""
        return self._end

    def write(self, *values: Any) -> None:
        """Replace the record."""
        self._count += 1
        body = self._record.pack(self._count, *values)
        self._memory[self._begin : self._end] = CHECK.pack(zlib.crc32(body)) + body

    def read(self) -> tuple[Any, ...] | None:
        """Return the number of the newest record, from 1, and its values. None: there is none yet."""
        for _ in range(TRIES):
            content = self._memory[self._begin : self._end]
            body = content[CHECK.size :]
            if CHECK.unpack_from(content)[0] == zlib.crc32(body):
                self._newest = self._record.unpack(body)
                break
        return self._newest


def shared_memory(size: int) -> int:
    """Return the descriptor of anonymous memory of ``size`` bytes, for a child process to inherit."""
    descriptor = os.memfd_create("bid_ros")
    os.ftruncate(descriptor, size)
    return descriptor

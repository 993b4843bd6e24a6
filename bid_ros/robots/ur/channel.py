"""Records in shared memory: one process writes, the other reads the newest, and neither waits."""

import mmap
import os
import pickle
import struct
import zlib
from typing import Any, Final

# A reader that meets a half-written record tries again. If the writer is held up there, it loses one record.
TRIES: Final = 8
HEAD: Final = struct.Struct("<II")  # checksum and size of what follows


class SharedRecord:
    """The newest of many records, in shared memory. A checksum rejects a half-written one.

    Args:
        memory: the memory. Only processes that this program starts have it, so its pickles can be trusted.
        offset: first byte of the record, which may be as long as the memory behind it is free.
    """

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._memory = memory
        self._head, self._body = offset, offset + HEAD.size
        self._count = 0
        self._newest: tuple[int, Any] | None = None

    def write(self, value: Any) -> None:
        """Replace the record."""
        self._count += 1
        body = pickle.dumps((self._count, value))
        self._memory[self._head : self._body + len(body)] = HEAD.pack(zlib.crc32(body), len(body)) + body

    def read(self) -> tuple[int, Any] | None:
        """Return the number of the newest record, from 1, and its value. None: there is none yet."""
        for _ in range(TRIES):
            checksum, size = HEAD.unpack_from(self._memory, self._head)
            body = self._memory[self._body : self._body + size]
            if body and checksum == zlib.crc32(body):
                self._newest = pickle.loads(body)
                break
        return self._newest


def shared_memory(size: int) -> int:
    """Return the descriptor of anonymous memory of ``size`` bytes, for a child process to inherit."""
    descriptor = os.memfd_create("bid_ros")
    os.ftruncate(descriptor, size)
    return descriptor

"""A message is cut into parts, and each of several connections carries one.

TCP takes a lost packet for a full link: from then on few packets of that connection are under way at once, and a
message of many packets needs several round trips. Over several connections each part is short, and a lost packet
slows down its own part only. A part that is late is sent once more, over another connection.

The first connection is like any other. Its metadata offer a ``session`` and the largest number of ``connections``. A
client may open more with the header :data:`HEADER`, ``SESSION INDEX``; each is greeted with an empty map. Then it may
cut questions into parts of nearly equal length. Nine bytes before each part, :data:`HEAD`, say of which message it is.
They begin with a byte that begins no map of msgpack, so a whole message stays what it was. A part may come over any
connection, and twice. A question in parts is answered in parts, over the connections that have carried some.

Source: Allcock et al., "GridFTP: Protocol Extensions to FTP for the Grid", GFD-R-P.020, 2003 (a transfer striped over
parallel streams of TCP).
"""

import itertools
import struct
from typing import Final

from bid_ros.core.errors import RemoteError

HEADER: Final = "Bid-Session"
MARK: Final = 0xC1  # msgpack never uses it
HEAD: Final = struct.Struct("<BIHH")  # the mark; number of the message, from 1; index of the part; number of parts
MOST: Final = 8  # connections of one client
USUAL: Final = 4


def cut(message: bytes, number: int, count: int) -> list[bytes]:
    """Return ``count`` parts of a message, each behind its head. Their lengths differ by 1 at most."""
    bounds = itertools.pairwise(len(message) * index // count for index in range(count + 1))
    return [HEAD.pack(MARK, number, index, count) + message[begin:end] for index, (begin, end) in enumerate(bounds)]


def is_part(message: bytes) -> bool:
    """Return whether a message is a part of one."""
    return message[:1] == bytes([MARK])


class Assembly:
    """Puts messages together from their parts. A part of an older message, or one that came already, is dropped.

    Args:
        largest: bytes of the largest message that is taken.
    """

    def __init__(self, largest: int) -> None:
        self._largest, self._number, self._count = largest, 0, 0
        self._found: dict[int, bytes] = {}

    def take(self, part: bytes) -> bytes | None:
        """Take a part; return the message that it completes, or None.

        Raises:
            RemoteError: it is no part, or one of a message that is too large.
        """
        if len(part) < HEAD.size:
            raise RemoteError(f"a part of a message of {len(part)} bytes; valid are {HEAD.size} or more")
        _, number, index, count = HEAD.unpack_from(part)
        if number > self._number:
            self._number, self._count, self._found = number, count, {}
        elif number < self._number or len(self._found) == self._count:
            return None
        if count != self._count or not index < count <= MOST:
            raise RemoteError(f"part {index} of {count} of a message; valid are up to {MOST}, numbered from 0")
        self._found[index] = part[HEAD.size :]
        if sum(map(len, self._found.values())) > self._largest:
            raise RemoteError(f"a message of more than {self._largest} bytes")
        if len(self._found) < count:
            return None
        return b"".join(self._found[number] for number in range(count))

"""A message is cut into parts, and each of several connections carries one.

TCP takes a lost packet for a full link: from then on few packets of that connection are under way at once, and a
message of many packets needs several round trips. Over several connections each part is short, and a lost packet
slows down its own part only. A part that is late is sent once more, over another connection.

The first connection is like any other. Its metadata offer a ``session`` and the largest number of ``connections``. A
client opens more with the header :data:`HEADER`, ``SESSION INDEX``, and waits for a greeting on each. From then on
every message, question or answer, is cut into parts of nearly equal length. Eight bytes before each part say of which
message it is: three whole numbers, :data:`HEAD`. A part may come over any connection, and twice. A text is not cut: it
says what is wrong.

Source: Allcock et al., "GridFTP: Protocol Extensions to FTP for the Grid", GFD-R-P.020, 2003 (a transfer striped over
parallel streams of TCP).
"""

import itertools
import struct
from typing import Final

from bid_ros.core.errors import RemoteError

HEADER: Final = "Bid-Session"
HEAD: Final = struct.Struct("<IHH")  # number of the message, from 1; index of the part; number of parts
MOST: Final = 16  # connections of one client
USUAL: Final = 4


def cut(message: bytes, number: int, count: int) -> list[bytes]:
    """Return ``count`` parts of a message, each behind its head. Their lengths differ by 1 at most."""
    bounds = itertools.pairwise(len(message) * index // count for index in range(count + 1))
    return [HEAD.pack(number, index, count) + message[begin:end] for index, (begin, end) in enumerate(bounds)]


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
            raise RemoteError(f"{len(part)} bytes over one of several connections; valid are {HEAD.size} and a part")
        number, index, count = HEAD.unpack_from(part)
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

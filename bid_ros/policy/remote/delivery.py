"""Watches a message until the other end has acknowledged it, so that no lost packet holds it up for long.

The receiver of TCP reports a gap as soon as a later packet arrives. So a lost packet costs about one round trip. Behind
the last packet nothing comes: Linux then waits for two round trips and 200 ms more, longer than a decision's period.
The same holds for a packet that is lost again when it is sent again. So an empty pong frame, in a packet of its own,
is sent behind each message, and another one every 10 ms until everything is acknowledged. Every end of a websocket
may send pongs unasked and ignores those that come.

After two losses the kernel may allow one packet under way, and that is the lost one: then no pong helps. So a part of a
message that is late is sent once more, over another connection.

Sources: Cheng et al., "The RACK-TLP Loss Detection Algorithm for TCP", RFC 8985, Sections 6.2 and 7.2 (the wait is
longer while one packet is in flight); Fette & Melnikov, "The WebSocket Protocol", RFC 6455, Section 5.5.3 (unasked
pongs).
"""

import array
import fcntl
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

SIOCOUTQNSD: Final = 0x894B  # Linux: bytes in the queue of a socket that were not sent yet
SIOCOUTQ: Final = 0x5411  # Linux: bytes in the queue of a socket that were not acknowledged yet
TCP_INFO: Final = 11  # Linux: option that returns a struct tcp_info
TRIP_AT, ACKNOWLEDGED_AT, TOLD = 68, 120, 128  # bytes of it
STEP_S: Final = 0.001  # between two looks
AGAIN_S: Final = 0.01  # between two pongs
LATE_S, LATE_TRIPS = 0.02, 2.0  # time and round trips without progress after which a part is late
TRIES: Final = 5


def unsent(plain: Any) -> int:
    """Return how many bytes of a TCP socket its kernel has not sent yet; 0 where the kernel does not tell."""
    return _queued(plain, SIOCOUTQNSD)


def told(plain: Any) -> tuple[int, float]:
    """Return how many bytes the other end has acknowledged since the beginning, and the round trip in s.

    Raises:
        OSError: the kernel does not tell.
    """
    said = plain.getsockopt(socket.IPPROTO_TCP, TCP_INFO, TOLD)
    if len(said) < TOLD:
        raise OSError
    (trip_us,), (acknowledged,) = struct.unpack_from("I", said, TRIP_AT), struct.unpack_from("Q", said, ACKNOWLEDGED_AT)
    return acknowledged, trip_us / 1e6


def _queued(plain: Any, question: int) -> int:
    number = array.array("i", [0])
    with suppress(OSError, ValueError):  # ValueError: it is closed
        fcntl.ioctl(plain.fileno(), question, number)
    return number[0]


def _goal(plain: Any) -> int:
    """Return how many bytes the other end will have acknowledged when it has all that the kernel was given."""
    waiting = -1
    for _ in range(TRIES):  # an acknowledgement may come between two questions
        before, waiting = waiting, _queued(plain, SIOCOUTQ)
        acknowledged, _ = told(plain)
        if before == waiting:
            break
    return acknowledged + waiting


class Delivery:
    """Parts of a message that the kernel has been given, one on each socket. One thread only.

    Args:
        sockets: TCP sockets.
    """

    def __init__(self, sockets: Sequence[Any]) -> None:
        self._sockets, now = sockets, time.monotonic()
        self._pong_at: dict[int, float] = {}
        self._spared: dict[int, int] = {}
        self._goals: list[int] = []
        self._heard = [(0, now) for _ in sockets]  # bytes, and since when it is so many
        with suppress(OSError):  # then there is one pong a socket, and nothing is late
            self._goals = [_goal(plain) for plain in sockets]

    def waiting(self) -> list[int]:
        """Return which parts have not been acknowledged; none where the kernel does not tell."""
        found = []
        for index, (plain, goal) in enumerate(zip(self._sockets, self._goals, strict=False)):
            with suppress(OSError):  # it has ended
                acknowledged, _ = told(plain)
                if acknowledged != self._heard[index][0]:
                    self._heard[index] = acknowledged, time.monotonic()
                if acknowledged < goal:
                    found.append(index)
        return found

    def stuck(self) -> list[Any]:
        """Return the sockets whose parts have not been acknowledged."""
        return [self._sockets[index] for index in self.waiting()]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done."""
        return len(self._pong_at) == len(self._sockets) and not self.waiting()

    def pongs(self) -> list[int]:
        """Return on which sockets a pong is to be sent now.

        What is unsent when a pong is given to the kernel would share a packet with it. So its time is after that.
        """
        now, waiting = time.monotonic(), self.waiting()
        found = []
        for index, plain in enumerate(self._sockets):
            first = index not in self._pong_at
            again = not first and index in waiting and now - self._pong_at[index] >= AGAIN_S
            if (first or again) and not unsent(plain):
                self._pong_at[index] = now
                found.append(index)
        return found

    def late(self) -> list[tuple[int, int]]:
        """Return which parts are to be sent once more now, each once, and over which socket.

        A part is late when no byte of it has been acknowledged for a while: a link that is slow loses nothing. It goes
        over a socket that has delivered its own part. If there is none yet, it is late the next time, too.
        """
        now, waiting, found = time.monotonic(), self.waiting(), []
        free = [index for index in range(len(self._sockets)) if index not in waiting]
        for index in waiting:
            still_s = now - self._heard[index][1]
            if index in self._spared or not free or still_s < LATE_S:
                continue
            with suppress(OSError):  # it has ended
                if still_s >= LATE_S + LATE_TRIPS * told(self._sockets[index])[1]:
                    spare = min(free, key=list(self._spared.values()).count)
                    self._spared[index] = spare
                    found.append((index, spare))
        return found


def unhindered(everyone: Sequence[Any], sockets: Sequence[Any], before: Iterable[Delivery]) -> list[Any]:
    """Return the connections that have delivered what they were given before; all, if there is none.

    Args:
        everyone: connections.
        sockets: of each.
        before: what they were given.
    """
    stuck = {id(plain) for each in before for plain in each.stuck()}
    free = [connection for connection, plain in zip(everyone, sockets, strict=True) if id(plain) not in stuck]
    return free or list(everyone)

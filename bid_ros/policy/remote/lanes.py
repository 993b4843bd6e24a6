"""The client's end of the connections to a policy server: one, or several that carry the parts of each message."""

import socket
import struct
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from bid_ros.policy.remote.delivery import STEP_S, Delivery, unhindered
from bid_ros.policy.remote.dial import seconds_left
from bid_ros.policy.remote.parts import HEADER, MOST, Assembly, cut


class Lanes:
    """Connections side by side. One thread only, but for the opening.

    Args:
        first: connection of ``websockets.sync``.
        largest: bytes of the largest message that is taken.
    """

    def __init__(self, first: Any, largest: int) -> None:
        self._all, self._number, self._assembly = [first], 0, Assembly(largest)
        self._used, self._parts = list[Any](), list[bytes]()
        self._delivery = Delivery([])
        self._before = deque[Delivery](maxlen=MOST)

    def widen(self, session: str, count: int, connect: Callable[[dict[str, str]], Any], end: float) -> None:
        """Open more connections, all at once, until there are ``count``.

        Args:
            session: that the server has offered.
            connect: returns a connection that is opened with these headers.
            end: of the wait, s of the steady clock.

        Raises:
            Exception: one of them could not be opened, as ``connect`` says. What was opened is kept, to be closed.
        """

        def opened(index: int) -> Any:
            connection = connect({HEADER: f"{session} {index}"})
            connection.recv(timeout=seconds_left(end))
            return connection

        with ThreadPoolExecutor(MOST, "policy-link") as opening:
            begun = [opening.submit(opened, index) for index in range(1, count)]
        self._all += [each.result() for each in begun if each.exception() is None]
        for each in begun:
            each.result()

    def unasked(self) -> bool:
        """Return whether a message or a text has come already. Raises ConnectionClosed when a connection has ended."""
        return any(self._come(connection, 0) is not None for connection in self._all)

    def send(self, message: bytes, end: float) -> None:
        """Send a message until a time of the steady clock.

        Raises:
            ConnectionClosed: a connection has ended, or did not take its part in time.
        """
        left = seconds_left(end)
        # A full buffer of a dead connection would hold up the sender for minutes.
        limit = struct.pack("ll", int(left), int(left % 1 * 1e6) + 1)
        self._number += 1
        self._used = unhindered(self._all, [connection.socket for connection in self._all], self._before)
        self._parts = cut(message, self._number, len(self._used)) if len(self._all) > 1 else [message]
        for connection, part in zip(self._used, self._parts, strict=True):
            with suppress(OSError):  # it has ended, which sending says
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            connection.send(part)
        self._delivery = Delivery([connection.socket for connection in self._used])
        self._before.append(self._delivery)

    def receive(self, end: float) -> bytes | str:
        """Return the next message, or the next text. Meanwhile see to it that what was sent last arrives.

        Raises:
            TimeoutError: it did not come until ``end``, s of the steady clock.
            ConnectionClosed: a connection has ended.
            RemoteError: what came is no part of a message.
        """
        while True:
            self._see_to_delivery()
            for index, connection in enumerate(self._all):
                message = self._come(connection, 0.0 if index else min(seconds_left(end), STEP_S))
                if message is not None:
                    return message

    def _come(self, connection: Any, wait_s: float) -> bytes | str | None:
        """Return a message or a text that a connection has completed; None: there is none yet."""
        try:
            came: bytes | str = connection.recv(timeout=wait_s)
        except TimeoutError:
            return None
        return came if isinstance(came, str) or len(self._all) == 1 else self._assembly.take(came)

    def _see_to_delivery(self) -> None:
        """Send what the last message needs to arrive soon."""
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):  # the answer may have come before; if not, whoever waits for it is told
            for index in self._delivery.pongs():
                self._used[index].pong()
            for index in self._delivery.late():
                if (spare := self._delivery.spare(index)) is not None:
                    self._used[spare].send(self._parts[index])

    def close(self) -> None:
        """End the connections, at once."""
        for connection in self._all:
            with suppress(OSError):  # its threads end with the socket; nothing waits for the other end
                connection.socket.shutdown(socket.SHUT_RDWR)

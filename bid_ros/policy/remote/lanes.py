"""The client's end of the connections to a policy server: one, or several that carry the parts of each message."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from bid_ros.policy.remote.delivery import STEP_S, Delivery, unhindered
from bid_ros.policy.remote.dial import seconds_left
from bid_ros.policy.remote.parts import HEADER, MOST, Assembly, cut, is_part

GREETED_S: Final = 5.0


class Lanes:
    """Connections side by side. One thread only, but for :meth:`close` and the opening of more.

    Args:
        first: connection of ``websockets.sync``, already greeted.
        largest: bytes of the largest message that is taken.
    """

    def __init__(self, first: Any, largest: int) -> None:
        self._all, self._opened, self._closed = [first], list[Any](), False
        self._number, self._assembly = 0, Assembly(largest)
        self._used, self._parts = list[Any](), list[bytes]()
        self._delivery = Delivery([])
        self._before = deque[Delivery](maxlen=MOST)

    def widen(self, session: str, count: int, connect: Callable[[dict[str, str]], Any]) -> list[threading.Thread]:
        """Open more connections, each in a thread of its own, until there are ``count``. Return the threads.

        The next message takes those that are open by then. One that cannot be opened is missed and nothing else.

        Args:
            session: that the server has offered.
            count: of connections.
            connect: returns a connection that is opened with these headers.
        """
        threads = [
            threading.Thread(target=self._open, args=(f"{session} {index}", connect), name="policy-link", daemon=True)
            for index in range(1, count)
        ]
        for thread in threads:
            thread.start()
        return threads

    def _open(self, place: str, connect: Callable[[dict[str, str]], Any]) -> None:
        connection = None
        try:
            connection = connect({HEADER: place})
            connection.recv(timeout=GREETED_S)
            self._opened.append(connection)
        except Exception:  # whatever a network or a server does: the first connection goes on
            _end(connection)
        if self._closed:
            _end(connection)

    def unasked(self) -> bool:
        """Return whether a message or a text has come already. Raises ConnectionClosed when a connection has ended."""
        return any(self._come(connection, 0) is not None for connection in self._all)

    def send(self, message: bytes, whole: bool = False) -> None:
        """Send a message.

        It may block while a connection takes nothing, until :meth:`close` is called in another thread.

        Args:
            message: not empty.
            whole: send it over the first connection. Messages in parts may only be sent one after the other's answer.

        Raises:
            ConnectionClosed: a connection has ended.
        """
        while self._opened:
            self._all.append(self._opened.pop())
        if whole or len(self._all) == 1:
            self._used, self._parts = self._all[:1], [message]
        else:
            self._number += 1
            self._used = unhindered(self._all, [connection.socket for connection in self._all], self._before)
            self._parts = cut(message, self._number, len(self._used))
        for connection, part in zip(self._used, self._parts, strict=True):
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

    def close(self) -> None:
        """End the connections, at once. Any thread may call it."""
        self._closed = True
        for connection in (*self._all, *self._opened):
            _end(connection)

    def _come(self, connection: Any, wait_s: float) -> bytes | str | None:
        """Return a message or a text that a connection has completed; None: there is none yet."""
        try:
            came: bytes | str = connection.recv(timeout=wait_s)
        except TimeoutError:
            return None
        if isinstance(came, bytes) and len(self._all) > 1 and is_part(came):
            return self._assembly.take(came)
        return came

    def _see_to_delivery(self) -> None:
        """Send what the last message needs to arrive soon."""
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):  # the answer may have come before; if not, whoever waits for it is told
            for index in self._delivery.pongs():
                self._used[index].pong()
            for index, spare in self._delivery.late():
                self._used[spare].send(self._parts[index])


def _end(connection: Any) -> None:
    if connection is not None:
        with suppress(OSError):  # its threads end with the socket; nothing waits for the other end
            connection.socket.shutdown(socket.SHUT_RDWR)

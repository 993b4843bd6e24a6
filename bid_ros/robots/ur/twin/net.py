"""TCP without blocking: the controller's cycle serves every client between two steps and waits for none."""

from __future__ import annotations

import logging
import selectors
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from bid_ros.core.errors import ArmError

MAX_PENDING: Final = 65_536  # bytes that wait for a client which does not read; more ends its connection
READ_SIZE: Final = 65_536
MAX_CLIENTS: Final = 64
LOG = logging.getLogger(__name__)


class Misbehaviour(ValueError):
    """A client broke its protocol; the message is the sentence that ends its connection."""


class Session(Protocol):
    """What a server makes of one connection."""

    def received(self, data: bytes) -> None:
        """Take bytes as they came, whole messages or pieces; raises Misbehaviour to end the connection."""

    def lost(self) -> None:
        """Let go of everything the client held; the connection is closed already."""


class Connection:
    """One client's socket: sends what fits now and keeps a bounded rest.

    Args:
        link: an accepted socket.
        name: of the client in log sentences.
    """

    def __init__(self, link: socket.socket, name: str) -> None:
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_PENDING)
        self.link = link
        self.name = name
        self.closing = False
        self._pending = bytearray()

    @property
    def blocked(self) -> bool:
        """Whether the client has not yet taken what was sent before."""
        return bool(self._pending)

    @property
    def open(self) -> bool:
        """Whether the connection has not ended."""
        return self.link.fileno() >= 0

    def send(self, data: bytes) -> None:
        """Send ``data`` after everything sent before; raises Misbehaviour if too much waits already."""
        self._pending += data
        self.flush()
        if len(self._pending) > MAX_PENDING:
            raise Misbehaviour(f"{self.name} does not read: {len(self._pending)} bytes wait; valid is {MAX_PENDING}")

    def offer(self, data: bytes) -> bool:
        """Send ``data`` if the client keeps up, leave it out otherwise; return whether it was sent."""
        self.flush()
        if self._pending:
            return False
        self.send(data)
        return True

    def flush(self) -> None:
        """Send what waits as far as the socket takes it; raises OSError if the client is gone."""
        while self._pending:
            try:
                sent = self.link.send(self._pending)
            except BlockingIOError:
                return
            del self._pending[:sent]

    def reset(self) -> None:
        """Let the connection end so that the client's next write fails, instead of vanishing."""
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", True, 0))

    def close_after_sending(self) -> None:
        """End the connection once this poll is over."""
        self.closing = True


class Switchboard:
    """All listening ports and clients of one controller, served by :meth:`poll` from a single thread.

    Args:
        address: the local IPv4 address to listen on, so that several controllers run side by side.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._sessions: dict[socket.socket, tuple[Connection, Session]] = {}
        self.dropped = 0

    def listen(self, port: int, name: str, open_session: Callable[[Connection], Session]) -> None:
        """Serve ``port`` with sessions that ``open_session`` makes of connections.

        Raises:
            ArmError: if the port is taken or the address is not one of this computer.
        """
        try:
            listener = socket.create_server((self._address, port))
        except OSError as error:
            raise ArmError(f"the UR twin cannot serve {name} on {self._address}:{port}: {error}") from error
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, (name, open_session))

    @property
    def clients(self) -> int:
        """How many connections are open."""
        return len(self._sessions)

    def poll(self) -> None:
        """Accept who knocks and hand over what has arrived; a client's fault ends that connection alone."""
        for key, _ in self._selector.select(0):
            link = key.fileobj
            assert isinstance(link, socket.socket)
            if key.data is None:
                self._read(link)
            else:
                self._accept(link, *key.data)

    def guard(self, connection: Connection, work: Callable[[], object]) -> None:
        """Do ``work`` for a client; if it fails, end the connection with one sentence."""
        try:
            work()
        except Misbehaviour as error:
            LOG.warning("UR twin %s: %s; its connection is closed", self._address, error)
            self._drop(connection.link)
        except OSError:
            self._drop(connection.link)

    def close(self) -> None:
        """End every connection and free the ports."""
        for link in list(self._sessions):
            self._drop(link)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._selector.close()

    def _accept(self, listener: socket.socket, name: str, open_session: Callable[[Connection], Session]) -> None:
        try:
            link, peer = listener.accept()
        except OSError:
            return  # the client left before it was let in
        if len(self._sessions) >= MAX_CLIENTS:
            LOG.warning("UR twin %s: %s:%d is not let in: %d clients are", self._address, *peer, MAX_CLIENTS)
            link.close()
            return
        connection = Connection(link, f"{name} client {peer[0]}:{peer[1]}")
        self._selector.register(link, selectors.EVENT_READ, None)
        self.guard(connection, lambda: self._sessions.update({link: (connection, open_session(connection))}))

    def _read(self, link: socket.socket) -> None:
        connection, session = self._sessions[link]
        try:
            data = link.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(link, by_client=True)
            return
        self.guard(connection, lambda: session.received(data))
        if connection.closing:
            self._drop(link, by_client=True)

    def _drop(self, link: socket.socket, by_client: bool = False) -> None:
        if link.fileno() < 0:
            return  # dropped already, as when the goodbye to a client could not be sent
        self.dropped += not by_client
        with suppress(KeyError):
            self._selector.unregister(link)
        link.close()
        _, session = self._sessions.pop(link, (None, None))
        if session is not None:
            session.lost()

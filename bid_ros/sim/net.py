"""TCP servers of a twin: its thread serves every client between two steps, and waits for none."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from bid_ros.core.errors import ArmError

MAX_PENDING: Final = 65_536  # bytes that wait for a client which does not read; more ends its connection
MAX_CLIENTS: Final = 64
ACCEPTED: Final = 4  # clients let in at once, so that those which have left again are noticed in between
QUEUE: Final = 128
MAX_LINE: Final = 4096
LOG = logging.getLogger(__name__)


class Misbehaviour(ValueError):
    """A client broke its protocol; the message is the sentence that ends its connection."""


class TwinSession(asyncio.Protocol):
    """One client's connection. A server's own kind of session overrides what it needs to.

    Attributes:
        board: what serves it.
        name: of the client in log sentences.
        transport: the connection itself.
    """

    board: Switchboard
    name: str
    transport: asyncio.Transport

    def opened(self) -> None:
        """Greet the client."""

    def received(self, data: bytes) -> None:
        """Take bytes as they came, whole messages or pieces; raises Misbehaviour to end the connection."""

    def publish(self) -> None:
        """Say what is due after a step; raises Misbehaviour to end the connection."""

    def lost(self) -> None:
        """Let go of everything the client held; the connection is closed already."""

    @property
    def blocked(self) -> bool:
        """Whether the client has not yet taken what was sent before."""
        return self.transport.get_write_buffer_size() > 0

    def send(self, data: bytes) -> None:
        """Send ``data`` after everything sent before; raises Misbehaviour if too much waits already."""
        if self.transport.is_closing():
            return  # the client left
        self.transport.write(data)
        waiting = self.transport.get_write_buffer_size()
        if waiting > MAX_PENDING:
            raise Misbehaviour(f"{self.name} does not read: {waiting} bytes wait; valid is {MAX_PENDING}")

    def offer(self, data: bytes) -> bool:
        """Send ``data`` if the client keeps up, leave it out otherwise; return whether it was sent."""
        if self.blocked:
            self.board.left_out += 1
            return False
        self.send(data)
        return True

    def attempt(self, work: Callable[[], None]) -> None:
        """Do ``work`` for the client; if it broke its protocol, end the connection with one sentence."""
        try:
            work()
        except Misbehaviour as error:
            LOG.warning("twin at %s: %s; its connection is closed", self.board.address, error)
            self.board.dropped += 1
            self.transport.abort()
        except Exception as error:  # a fault of the twin, which asyncio would only log
            self.board.fault = error

    def connection_made(self, transport: Any) -> None:
        """See :class:`asyncio.Protocol`."""
        self.transport = transport
        self.name += " client {}:{}".format(*transport.get_extra_info("peername"))
        if len(self.board.sessions) >= MAX_CLIENTS:
            LOG.warning("twin at %s: %s is not let in: %d clients are", self.board.address, self.name, MAX_CLIENTS)
            transport.abort()
            return
        link = transport.get_extra_info("socket")
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_PENDING)
        self.board.sessions.append(self)
        self.opened()

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self.attempt(partial(self.received, data))

    def eof_received(self) -> None:
        """See :class:`asyncio.Protocol`. A client that has left is not waited for until it reads."""
        self.transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        if self in self.board.sessions:
            self.board.sessions.remove(self)
            self.lost()


class LineSession(TwinSession):
    """A client that sends lines of text."""

    _rest = b""

    def received(self, data: bytes) -> None:
        """Take every complete line; raises Misbehaviour if a line does not end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.take(line.decode("utf-8", "replace").strip())
        if len(self._rest) > MAX_LINE:
            raise Misbehaviour(f"{self.name} sent a line of over {MAX_LINE} bytes")

    def take(self, line: str) -> None:
        """Take one line, without its end."""


class Switchboard:
    """All listening ports and clients of one twin, served by :meth:`poll` from a single thread.

    Args:
        address: the local IPv4 address to listen on, so that several twins run side by side.

    Attributes:
        sessions: of the clients that are connected.
        dropped: number of connections that a client's fault ended.
        left_out: number of packages that clients were too slow for.
        fault: failure of the twin itself while it served a client; :meth:`poll` raises it.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.sessions: list[TwinSession] = []
        self.dropped = self.left_out = 0
        self.fault: Exception | None = None
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []

    def listen(self, port: int, name: str, open_session: Callable[[], TwinSession]) -> None:
        """Serve ``port`` with sessions that ``open_session`` makes; ``name`` says of what.

        Raises:
            ArmError: if the port is taken or the address is not one of this computer.
        """

        def factory() -> TwinSession:
            session = open_session()
            session.board, session.name = self, name
            return session

        try:
            listener = socket.create_server((self.address, port))
            serving = self._loop.create_server(factory, sock=listener, backlog=ACCEPTED)
            self._servers.append(self._loop.run_until_complete(serving))
            listener.listen(QUEUE)  # asyncio lets only as many wait as it accepts at once
        except OSError as error:
            raise ArmError(f"the twin cannot serve {name} on {self.address}:{port}: {error}") from error

    def poll(self) -> None:
        """Accept who knocks, hand over what has arrived, and send what waits. Raises what failed in the twin itself."""
        self._loop.run_until_complete(asyncio.sleep(0))
        if self.fault is not None:
            raise self.fault

    def publish(self) -> None:
        """Let every session say what is due."""
        for session in tuple(self.sessions):
            session.attempt(session.publish)

    def close(self) -> None:
        """End every connection and free the ports; calling it again does nothing."""
        if self._loop.is_closed():
            return
        for server in self._servers:
            server.close()
        for session in self.sessions:
            session.transport.abort()
        self.poll()
        self._loop.close()

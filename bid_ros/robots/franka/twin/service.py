"""One of the robot's two services: commands over TCP, states and control over UDP, for one client at a time."""

import ipaddress
import logging
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from franky_sim.franka_server import ConnectStatus

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.twin.messages import CONNECT, Dialect
from bid_ros.sim.net import Misbehaviour

MAX_GUESTS: Final = 8  # TCP connections that have not said Connect; of more, the oldest goes
LONGEST_DATAGRAM: Final = 2048
# A connection that is closed by a reset. After an orderly end libfranka looks for an answer again and again, for more
# than 10 s, with a core of its own at the highest priority.
AT_ONCE: Final = struct.pack("ii", 1, 0)
LOG = logging.getLogger(__name__)


class FciClient:
    """A TCP connection.

    Attributes:
        link: its socket.
        host: address of the client; name: address and port.
        buffer: what came and is no whole message yet.
    """

    def __init__(self, link: socket.socket, host: str, port: int) -> None:
        self.link, self.host, self.name = link, host, f"{host}:{port}"
        self.buffer = bytearray()


class FciService:
    """A server of the Franka Control Interface that waits for nobody: :meth:`serve` is called once a cycle.

    It listens on a loopback address alone. The first client that connects properly has the service until it leaves.
    Its datagrams come through a socket that is connected to it, so the kernel drops those of anybody else. Whoever
    sends what is no message of the service is disconnected; the others do not notice.

    Args:
        dialect: how it speaks.

    Attributes:
        plugged: the cable is in; without it nothing comes and nothing goes.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._address = ""
        self._listener: socket.socket | None = None
        self._ready = select.epoll()
        self._clients: dict[int, FciClient] = {}
        self._client: FciClient | None = None
        self._datagrams: socket.socket | None = None
        self._sent = 0  # states since the connection
        self.plugged = True

    @property
    def connected(self) -> bool:
        """Whether a client has the service."""
        return self._client is not None

    def open(self, address: str) -> None:
        """Listen on a loopback address.

        Raises:
            ArmError: if it is no loopback address.
            OSError: if the port is taken.
        """
        check_loopback(address)
        self._listener = socket.create_server((address, self._dialect.port))
        self._listener.setblocking(False)
        self._address = address
        self._ready.register(self._listener, select.EPOLLIN)

    def close(self) -> None:
        """End every connection and free the port; calling it again does nothing."""
        for client in tuple(self._clients.values()):
            self._drop(client)
        if self._listener is not None:
            self._ready.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def serve(self) -> None:
        """Let clients in, and do what they have commanded over TCP."""
        if not self.plugged:
            return
        for number, _ in self._ready.poll(0):
            client = self._clients.get(number)
            if client is not None:
                self._read(client)
            elif self._listener is not None:
                self._let_in(self._listener)

    def received(self) -> Iterator[bytes]:
        """Yield every datagram that the client has sent since the last call."""
        while self._datagrams is not None and self.plugged:
            try:
                yield self._datagrams.recv(LONGEST_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # the client's port is closed: its TCP connection ends in a moment
                return

    def send_state(self) -> None:
        """Send the client the present state. What it does not read in time is lost, as on a network."""
        link = self._datagrams
        if link is None or not self.plugged:
            return
        with suppress(OSError):
            link.send(self._dialect.stamp.pack(self._sent) + self.state_bytes())
        self._sent += 1

    def reply(self, command: int, number: int, status: int, payload: bytes = b"") -> None:
        """Answer a command of the client; one that does not take the answer is disconnected."""
        if self._client is not None:
            self._send(self._client, self._dialect.answer(command, number, status, payload))

    def state_bytes(self) -> bytes:
        """Return the present state as it is sent, without its number."""
        raise NotImplementedError

    def take(self, command: int, number: int, values: tuple[Any, ...]) -> None:
        """Do a command of the client; raises Misbehaviour to disconnect it."""
        raise NotImplementedError

    def left(self) -> None:
        """Let go of what the client had commanded; its connection is closed already."""

    def _let_in(self, listener: socket.socket) -> None:
        try:
            link, (host, port) = listener.accept()
        except OSError:  # it has left again
            return
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        guests = [guest for guest in self._clients.values() if guest is not self._client]
        if len(guests) >= MAX_GUESTS:
            self._drop(guests[0])
        client = self._clients[link.fileno()] = FciClient(link, host, port)
        self._ready.register(link, select.EPOLLIN)
        self._read(client)

    def _read(self, client: FciClient) -> None:
        try:
            data = client.link.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        client.buffer += data
        try:
            while client.link.fileno() >= 0 and (message := self._dialect.cut(client.buffer)) is not None:
                self._do(client, *message)
        except Misbehaviour as error:
            name = self._dialect.name
            LOG.warning("Franka twin: %s client %s sent %s; its connection is closed", name, client.name, error)
            if client.link.fileno() >= 0:
                client.link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self._drop(client)

    def _do(self, client: FciClient, command: int, number: int, values: tuple[Any, ...]) -> None:
        if command == CONNECT:
            self._connect(client, number, *values)
        elif client is self._client:
            self.take(command, number, values)
        else:
            raise Misbehaviour(f"a command {command} before a Connect")

    def _connect(self, client: FciClient, number: int, version: int, port: int) -> None:
        if version != self._dialect.version:
            status = ConnectStatus.kIncompatibleLibraryVersion
            LOG.warning("Franka twin: %s client %s has version %d", self._dialect.name, client.name, version)
            self._send(client, self._dialect.connect_answer(number, status))
            return
        if self._client is not None:
            raise Misbehaviour(f"a Connect while {self._client.name} has the {self._dialect.name}")
        if not port:
            raise Misbehaviour("a Connect with UDP port 0; valid are 1 to 65535")
        self._client, self._sent = client, 0
        self._datagrams = connected_socket(self._address, (client.host, port))
        self._send(client, self._dialect.connect_answer(number, ConnectStatus.kSuccess))

    def _send(self, client: FciClient, data: bytes) -> None:
        if not self.plugged:
            return
        try:
            whole = client.link.send(data) == len(data)
        except OSError:
            whole = False
        if not whole:
            self._drop(client)

    def _drop(self, client: FciClient) -> None:
        if self._clients.pop(client.link.fileno(), None) is None:
            return
        self._ready.unregister(client.link)
        client.link.close()
        if client is self._client:
            if self._datagrams is not None:
                self._datagrams.close()
            self._client = self._datagrams = None
            self.left()


def check_loopback(address: str) -> None:
    """Raise ArmError unless an address is one of this computer alone."""
    with suppress(ValueError):
        if ipaddress.IPv4Address(address).is_loopback:
            return
    raise ArmError(f"the twin's address is '{address}'; valid are loopback addresses, 127.0.0.1 to 127.255.255.254")


def connected_socket(address: str, peer: tuple[str, int]) -> socket.socket:
    """Return a UDP socket on a free port of an address which takes datagrams of one peer alone."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind((address, 0))
    link.connect(peer)
    link.setblocking(False)
    with suppress(OSError):  # what a stranger sent before the socket was connected; the peer does not know it yet
        while True:
            link.recv(LONGEST_DATAGRAM)
    return link

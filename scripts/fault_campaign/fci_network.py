"""A network between libfranka and the Franka twin that a campaign can damage: commands over TCP, the rest over UDP."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from robots.tcp_proxy import DOWN, UP, Network

from bid_ros.robots.process import go_first

ROBOT_PORT, HAND_PORT = 1337, 1338
_PORT_AT: Final = {ROBOT_PORT: 14, HAND_PORT: 12}  # bytes of a Connect before the client's UDP port
_PORT: Final = struct.Struct("<H")
_LARGEST: Final = 65536
_IDLE_S: Final = 0.2
Packets = Callable[[bytes], list[tuple[float, bytes]]]
"""From a datagram to those that are sent in its place, each after some s."""


def whole(data: bytes) -> list[tuple[float, bytes]]:
    """Pass a datagram on as it is."""
    return [(0.0, data)]


@dataclass
class Relay:
    """Passes the datagrams of one connection on, both ways, in a thread of its own.

    Args:
        client: address and port of the client; damage: by direction, which may be changed while it runs.

    Attributes:
        port: what the robot sends its states to.
    """

    client: tuple[str, int]
    damage: dict[str, Packets]
    _waiting: list[tuple[float, int, socket.socket, bytes, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._robot_side = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._client_side = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for link in (self._robot_side, self._client_side):
            link.bind(("127.0.0.1", 0))
            link.setblocking(False)
        self.port = int(self._robot_side.getsockname()[1])
        self._robot: tuple[str, int] | None = None
        self._numbers = itertools.count()
        self._running = True
        threading.Thread(target=self._run, name="relay", daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._running = False

    def _run(self) -> None:
        go_first()
        while self._running:
            wait = self._waiting[0][0] - time.monotonic() if self._waiting else _IDLE_S
            ready, _, _ = select.select([self._robot_side, self._client_side], [], [], max(0.0, min(wait, _IDLE_S)))
            for link in ready:
                with contextlib.suppress(OSError):
                    self._take(link)
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, link, data, where = heapq.heappop(self._waiting)
                with contextlib.suppress(OSError):
                    link.sendto(data, where)
        self._robot_side.close()
        self._client_side.close()

    def _take(self, link: socket.socket) -> None:
        data, sender = link.recvfrom(_LARGEST)
        if link is self._robot_side:
            self._robot = sender
            way, out, where = DOWN, self._client_side, self.client
        elif self._robot is None:
            return
        else:
            way, out, where = UP, self._robot_side, self._robot
        for after, passed in self.damage[way](data):
            heapq.heappush(self._waiting, (time.monotonic() + after, next(self._numbers), out, passed, where))


class _Connects:
    """Puts the relay's port into the Connect of each connection to one TCP port; everything else passes."""

    def __init__(self, network: FciNetwork, port: int) -> None:
        self._network, self._port, self._begun = network, port, False

    def __deepcopy__(self, _: object) -> _Connects:
        return _Connects(self._network, self._port)  # each connection begins anew

    def __call__(self, data: bytes) -> bytes:
        at = _PORT_AT[self._port]
        if self._begun or len(data) < at + _PORT.size:
            return data
        self._begun = True
        (port,) = _PORT.unpack_from(data, at)
        relay = self._network.relayed(port, self._port)
        return data[:at] + _PORT.pack(relay.port) + data[at + _PORT.size :]


class FciNetwork(Network):
    """Proxies of both services of a Franka; the datagrams of the robot's service can be damaged.

    Attributes:
        packets: how, by direction.
    """

    def __init__(self, address: str, robot: str) -> None:
        self.packets: dict[str, Packets] = {UP: whole, DOWN: whole}
        self._relays: list[Relay] = []
        super().__init__(address, robot, (ROBOT_PORT, HAND_PORT))
        for port in (ROBOT_PORT, HAND_PORT):
            self.damage(UP, _Connects(self, port), port)

    def relayed(self, client_port: int, service: int) -> Relay:
        """Return a new relay for a client's UDP port; ``service`` is the TCP port of the service."""
        honest: dict[str, Packets] = {UP: whole, DOWN: whole}
        damage = self.packets if service == ROBOT_PORT else honest
        relay = Relay(("127.0.0.1", client_port), damage)
        self._relays.append(relay)
        return relay

    def close(self) -> None:
        """End everything."""
        super().close()
        for relay in self._relays:
            relay.close()

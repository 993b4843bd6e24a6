"""A network between a robot and its client that a test can damage: TCP proxies in front of the robot's ports."""

from __future__ import annotations

import contextlib
import copy
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence

from bid_ros.robots.process import go_first

UP, DOWN = "up", "down"  # to the robot, from the robot
CHUNK = 65536
UR_PORTS = (29999, 30003, 30004, 63352)
# What the driver calls it when its connection was harmed; which of them depends on the byte that was hit.
CONNECTION_LOST = (
    "closed the connection", "silent", "hears us", "cannot be", "stopped our program", "no more", "was ended", "is lost"
)  # fmt: skip

Damage = Callable[[bytes], bytes]
Waiting = queue.SimpleQueue[tuple[float, bytes]]  # when they are due, and bytes; no bytes at the end


def drop(data: bytes) -> bytes:
    """Lose the third byte of every piece."""
    return data[:2] + data[3:]


def duplicate(data: bytes) -> bytes:
    """Send the first five bytes of every piece twice."""
    return data[:5] + data


def reorder(data: bytes) -> bytes:
    """Send the second half of every piece before the first."""
    half = len(data) // 2
    return data[half:] + data[:half]


def corrupt(data: bytes) -> bytes:
    """Turn every third byte over."""
    return bytes(byte ^ 0xFF if i % 3 == 2 else byte for i, byte in enumerate(data))


class Packages:
    """Damage of whole RTDE packages, each of which begins with its size: their bytes stay valid.

    Args:
        how: from a package and the one before it to what is sent in its place.
    """

    def __init__(self, how: Callable[[bytes, bytes], bytes]) -> None:
        self._how = how
        self._rest = self._before = b""

    def __call__(self, data: bytes) -> bytes:
        self._rest += data
        sent = b""
        while len(self._rest) >= 2 and len(self._rest) >= (size := struct.unpack(">H", self._rest[:2])[0]):
            package, self._rest = self._rest[:size], self._rest[size:]
            sent += self._how(package, self._before)
            self._before = package
        return sent


def repeated() -> Packages:
    """Every package twice."""
    return Packages(lambda package, _: 2 * package)


def swapped() -> Packages:
    """Every package before the one that came before it; each thus goes twice."""
    return Packages(lambda package, before: package + before)


class OutOfOrder(Packages):
    """The second package first, then the first, the fourth, the third and so on, each when the next one comes."""

    def __init__(self) -> None:
        super().__init__(self._turned)
        self._held = b""

    def _turned(self, package: bytes, before: bytes) -> bytes:
        if not self._held:
            self._held = package
            return b""
        if before == self._held:
            return package
        sent, self._held = self._held, package
        return sent


class Network:
    """Proxies on ``address`` in front of ``robot``, one a port.

    Args:
        address: loopback address to serve.
        robot: address behind it.
        ports: to serve.

    Attributes:
        opened: connections made so far.
    """

    def __init__(self, address: str, robot: str, ports: Sequence[int] = UR_PORTS) -> None:
        self.address = address
        self._robot = robot
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._running = True
        self.opened = 0
        self._passing: dict[str, threading.Event] = {}
        self.heal()
        self._listening = [socket.create_server((address, port)) for port in ports]
        for server in self._listening:
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def damage(self, direction: str, how: Damage, port: int = 30004) -> None:
        """Change the bytes that go up or down on a port; each connection gets a copy of its own of ``how``."""
        self._damage[(direction, port)] = how

    def delay(self, direction: str, seconds: float, port: int = 30004) -> None:
        """Hold back every byte for a while; the bytes behind it may wait with it."""
        self._delays[(direction, port)] = seconds

    def freeze(self, *directions: str) -> None:
        """Pass nothing more in these directions and leave the connections open, as an unplugged cable does."""
        for direction in directions:
            self._passing[direction].clear()

    def cut(self) -> None:
        """Close every connection."""
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._open.clear()

    def heal(self) -> None:
        """Pass everything unchanged from here on; connections that were damaged are closed."""
        self._damage: dict[tuple[str, int], Damage] = {}
        self._delays: dict[tuple[str, int], float] = {}
        self.cut()
        # New ones, and the old ones set only for their threads to end: what a frozen cable holds must not pass.
        for event in self._passing.values():
            event.set()
        self._passing = {UP: threading.Event(), DOWN: threading.Event()}
        for event in self._passing.values():
            event.set()

    def close(self) -> None:
        self._running = False
        for server in self._listening:
            server.close()
        self.heal()

    def _serve(self, server: socket.socket) -> None:
        port = server.getsockname()[1]
        while self._running:
            try:
                client, _ = server.accept()
                robot = socket.create_connection((self._robot, port), 2.0)
                robot.settimeout(None)
                for end in (client, robot):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                continue
            with self._lock:
                self._open += [client, robot]
                self.opened += 1
            for direction, source, sink in ((UP, client, robot), (DOWN, robot, client)):
                waiting: Waiting = queue.SimpleQueue()
                threading.Thread(target=self._take, args=(direction, port, source, waiting), daemon=True).start()
                threading.Thread(target=self._give, args=(direction, waiting, source, sink), daemon=True).start()

    def _take(self, direction: str, port: int, source: socket.socket, waiting: Waiting) -> None:
        go_first()  # a cable waits for no computer
        given: Damage = bytes
        how = given
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                due = time.monotonic() + self._delays.get((direction, port), 0.0)
                newest = self._damage.get((direction, port), bytes)
                if newest is not given:
                    # A copy for each connection, as it may keep what came before.
                    given, how = newest, copy.deepcopy(newest)
                if passed := how(data):
                    waiting.put((due, passed))
        waiting.put((time.monotonic(), b""))

    def _give(self, direction: str, waiting: Waiting, source: socket.socket, sink: socket.socket) -> None:
        go_first()  # a cable waits for no computer
        passing, ended = self._passing[direction], False
        with contextlib.suppress(OSError):
            while not ended:
                due, data = waiting.get()
                ended = not data
                time.sleep(max(0.0, due - time.monotonic()))
                passing.wait()
                sink.sendall(data)
        # This direction only: what is still on its way in the other one arrives.
        for end, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
            with contextlib.suppress(OSError):
                end.shutdown(how)

"""Reads set-points back from the controller of a UR. So a delay on the way to it is visible.

ur_rtde puts every set-point into input registers of the controller, and the controller reports these on request.
ur_rtde cannot request them, so a second, small RTDE client does.
"""

import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.rtde import PORT, PROTOCOL_VERSION, PackageError, PackageReader, PackageType, package

Numbers = tuple[float, ...]

# Where ur_rtde's servoL puts the pose, and its servoJ the joints.
REGISTERS: Final = ",".join(f"input_double_register_{number}" for number in range(6))
PACKAGE: Final = struct.Struct(">B6d")
RATE_HZ: Final = 125.0  # what a CB3 can, and a whole part of what an e-Series can
ANSWER_S: Final = 1.0
# Set-points that are kept until the robot reports them: at 500 Hz half a second, the longest timeout.
MOST: Final = 256
CHUNK: Final = 4096
SHORTEST_TEXT: Final = 3  # bytes: the lengths of message and source, and a level


class EchoLink:
    """An RTDE client that reads the registers with ur_rtde's set-points.

    Args:
        address: address of the robot.
        timeout_s: longest wait for each of four answers while connecting.

    Raises:
        ArmError: the robot does not answer, or does not report these registers.
    """

    def __init__(self, address: str, timeout_s: float = ANSWER_S) -> None:
        self._reader = PackageReader()
        try:
            self._socket = socket.create_connection((address, PORT), timeout_s)
            self._set_up()
        except (OSError, PackageError) as error:
            raise ArmError(
                f"robot at {address} does not report what it hears from us ({error}): check its software and that "
                f"nothing holds up its port {PORT}"
            ) from error
        self._socket.setblocking(False)

    def close(self) -> None:
        """Close the connection; calling it again does nothing."""
        self._socket.close()

    def newest(self) -> Numbers | None:
        """Return the newest reported registers ``(6,)``. None: nothing new came. Never waits.

        Raises:
            PackageError: the data are not RTDE.
            ConnectionError: the robot closed the connection.
        """
        found = None
        while data := self._received():
            for kind, payload in self._reader.feed(data):
                if kind is PackageType.DATA_PACKAGE:
                    found = _numbers(payload)
                elif kind is PackageType.TEXT_MESSAGE and len(payload) < SHORTEST_TEXT:
                    raise PackageError(f"a text message of {len(payload)} bytes; valid is {SHORTEST_TEXT} or more")
        return found

    def _received(self) -> bytes:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionError("it closed the connection")
        return data

    def _set_up(self) -> None:
        version = PROTOCOL_VERSION.to_bytes(2, "big")
        try:
            self._ask(PackageType.REQUEST_PROTOCOL_VERSION, version, "protocol version 2")
            self._ask(PackageType.SETUP_OUTPUTS, struct.pack(">d", RATE_HZ) + REGISTERS.encode(), REGISTERS)
            self._ask(PackageType.START, b"", "a start")
        except (OSError, PackageError):
            self.close()
            raise

    def _ask(self, kind: PackageType, payload: bytes, what: str) -> None:
        """Send a request and wait for its answer. The first byte of the answer is not 0 if it was accepted."""
        self._socket.sendall(package(kind, payload))
        while True:
            for answered, answer in self._reader.feed(self._received()):
                if answered is kind:
                    if answer[:1] in (b"", b"\x00") or b"NOT_FOUND" in answer:
                        raise PackageError(f"it refused {what}")
                    return


class UrEcho:
    """Measures the delay of set-points, to the robot and back.

    Args:
        newest: returns what the robot reported since the last call, see :meth:`EchoLink.newest`.
        clock: steady time in ns.

    Attributes:
        longest_s: largest returned age so far.
    """

    def __init__(self, newest: Callable[[], Numbers | None], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._newest = newest
        self._clock = clock
        self._unheard: deque[tuple[Numbers, int]] = deque(maxlen=MOST)
        self._last: Numbers | None = None
        self.longest_s = 0.0

    def sent(self, numbers: Numbers) -> None:
        """Note a sent set-point. A set-point equal to the last one is ignored."""
        if numbers != self._last:
            self._last = numbers
            self._unheard.append((numbers, self._clock()))

    def forget(self) -> None:
        """Forget all set-points: the registers are used for something else from now on."""
        self._unheard.clear()
        self._last = None

    def late_s(self) -> float:
        """Return the age in s of the oldest set-point that the robot has not reported; 0 without one.

        Raises:
            PackageError: the data are not RTDE.
            ConnectionError: the robot closed the connection.
        """
        now_ns = self._clock()  # first: what comes while this process is held up after it was not late
        heard = self._newest()
        if heard is not None:
            self._confirm(heard)
        late_s = (now_ns - self._unheard[0][1]) / NANOSECONDS if self._unheard else 0.0
        self.longest_s = max(self.longest_s, late_s)
        return late_s

    def _confirm(self, heard: Numbers) -> None:
        for place in range(len(self._unheard) - 1, -1, -1):
            if self._unheard[place][0] == heard:
                for _ in range(place + 1):
                    self._unheard.popleft()
                return


def _numbers(payload: bytes) -> Numbers:
    if len(payload) != PACKAGE.size:
        raise PackageError(f"a data package of {len(payload)} bytes; valid is {PACKAGE.size}")
    _, *numbers = PACKAGE.unpack(payload)
    return tuple(numbers)

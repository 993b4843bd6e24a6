"""The Robotiq 2F-85 twin: the gripper's text protocol in front of any pair of simulated fingers."""

from __future__ import annotations

import math
import re
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from bid_ros.errors import ArmError

PORT: Final = 63352
MAX_OPENING: Final = 0.085  # m
SPEED_RANGE: Final = (0.02, 0.15)  # m/s at register 0 and 255
FORCE_RANGE: Final = (20.0, 235.0)  # N at register 0 and 255
OPEN_REGISTER: Final = 3
CLOSED_REGISTER: Final = 230
ACTIVATION_S: Final = 0.3
REACTION_S: Final = 0.03  # until the gripper behind the URCap has taken a request and says so in PRE and OBJ
LONGEST_REQUEST: Final = 256
READABLE: Final = ("ACT", "GTO", "POS", "SPE", "FOR", "STA", "OBJ", "FLT", "PRE", "COU")
SETTABLE: Final = ("ACT", "GTO", "POS", "SPE", "FOR")
NOT_ACTIVATED: Final = 7  # of FLT
MOVING, BLOCKED_OPENING, BLOCKED_CLOSING, AT_TARGET = range(4)  # of OBJ

Result = TypeVar("Result")


class Fingers(Protocol):
    """What the twin needs of a pair of fingers."""

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""
        ...

    @property
    def status(self) -> int:
        """0 moving, 1 blocked while opening, 2 blocked while closing, 3 at the target: Robotiq's gOBJ."""
        ...

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s and press with up to ``force`` N."""
        ...


class Within(Protocol):
    """Runs work where the fingers may be touched, such as the thread of the physics."""

    def __call__(self, work: Callable[[], Result]) -> Result:
        """Run ``work`` and return its result."""
        ...


class KinematicFingers:
    """Fingers without mass, moved by the clock alone.

    Args:
        opening: m at the start.
        object_width: m of a rigid object between the pads, 0 for none.
        clock: steady seconds.
    """

    def __init__(
        self, opening: float = MAX_OPENING, object_width: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._from = self._target = opening
        self._since = clock()
        self._speed = SPEED_RANGE[1]
        self.object_width = object_width

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""
        travel = self._speed * (self._clock() - self._since)
        if self._target < self._from:
            return max(self._from - travel, self._target, min(self.object_width, self._from))
        return min(self._from + travel, self._target)

    @property
    def status(self) -> int:
        """What the fingers do, numbered as Robotiq's gOBJ."""
        opening = self.opening
        if opening == self._target:
            return AT_TARGET
        return BLOCKED_CLOSING if opening <= self.object_width else MOVING

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s; without mass any ``force`` N holds."""
        self._from, self._since = self.opening, self._clock()
        self._target, self._speed = opening, speed


class RobotiqTwin:
    """A gripper on port 63352 of an address, which a client of the URCap's socket cannot tell from the real one.

    Args:
        address: loopback address to serve.
        fingers: what it moves.
        within: how to reach ``fingers``; default is at once, in the thread of the client.
    """

    def __init__(
        self,
        address: str = "127.0.0.1",
        fingers: Fingers | None = None,
        within: Within | None = None,
    ) -> None:
        self._address = address
        self._fingers: Fingers = KinematicFingers() if fingers is None else fingers
        self._within: Within = _at_once if within is None else within
        self._lock = threading.Lock()
        self._registers = dict.fromkeys(("ACT", "GTO", "POS", "SPE", "FOR"), 0)
        self._activated_at = self._requested_at = -math.inf
        self._echo = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Serve; raises ArmError if the port is taken."""
        try:
            self._server = _Server((self._address, PORT), self.answer)
        except OSError as error:
            raise ArmError(f"the gripper's twin cannot serve {self._address}:{PORT}: {error.strerror}") from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="robotiq twin", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port and end the threads; calling it again does nothing."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, request: str) -> str:
        """Return the answer to one request line, as the gripper words it: ``ack``, ``POS 3`` or ``?``."""
        words = request.split()
        with self._lock:
            if words[:1] == ["GET"] and len(words) == 2 and words[1] in READABLE:
                return f"{words[1]} {self._read(words[1])}\n"
            if words[:1] == ["SET"]:
                return "ack" if self._set(words[1:]) else "?"
        return "?"

    def _set(self, words: list[str]) -> bool:
        names, values = words[::2], words[1::2]
        valid = all(re.fullmatch(r"\d{1,3}", value) and int(value) <= 255 for value in values)
        if not names or len(names) != len(values) or not valid or any(name not in SETTABLE for name in names):
            return False
        changes = {name: int(value) for name, value in zip(names, values, strict=True)}
        if changes.get("ACT", self._registers["ACT"]) and not self._registers["ACT"]:
            self._activated_at = time.monotonic()
        self._echo = self._read("PRE")
        self._requested_at = time.monotonic()
        self._registers.update(changes)
        if self._active and self._registers["GTO"] and ("POS" in changes or "GTO" in changes):
            self._move()
        return True

    @property
    def _active(self) -> bool:
        return bool(self._registers["ACT"]) and time.monotonic() >= self._activated_at + ACTIVATION_S

    def _move(self) -> None:
        share = (self._registers["POS"] - OPEN_REGISTER) / (CLOSED_REGISTER - OPEN_REGISTER)
        opening = MAX_OPENING * (1.0 - min(max(share, 0.0), 1.0))
        speed = _scaled(self._registers["SPE"], SPEED_RANGE)
        force = _scaled(self._registers["FOR"], FORCE_RANGE)
        self._within(lambda: self._fingers.command(opening, speed, force))

    def _read(self, name: str) -> int:
        if name == "POS":
            share = 1.0 - self._within(lambda: self._fingers.opening) / MAX_OPENING
            return round(min(max(OPEN_REGISTER + share * (CLOSED_REGISTER - OPEN_REGISTER), 0), 255))
        taken = time.monotonic() >= self._requested_at + REACTION_S
        if name == "PRE":
            return self._registers["POS"] if taken else self._echo
        if name == "OBJ":
            return int(self._within(lambda: self._fingers.status)) if self._registers["GTO"] and taken else MOVING
        if name == "STA":
            return (3 if self._active else 1) if self._registers["ACT"] else 0
        if name == "FLT":
            return 0 if self._registers["ACT"] else NOT_ACTIVATED
        if name == "COU":
            return 0
        return self._registers[name]


class _Server(socketserver.ThreadingTCPServer):
    """Accepts any number of clients, each on its own thread."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], answer: Callable[[str], str]) -> None:
        self.answer = answer
        super().__init__(address, _Client)


class _Client(socketserver.StreamRequestHandler):
    """Answers the lines of one client; a line longer than any request ends the connection."""

    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Serve until the client leaves."""
        try:
            while line := self.rfile.readline(LONGEST_REQUEST):
                if not line.endswith(b"\n"):
                    return
                self.wfile.write(self.server.answer(line.decode("ascii", "replace")).encode())
        except (OSError, ArmError):
            return  # the client left, or the controller that moves the fingers stopped: a dead gripper says nothing


def _scaled(register: int, span: tuple[float, float]) -> float:
    low, high = span
    return low + register / 255 * (high - low)


def _at_once(work: Callable[[], Result]) -> Result:
    return work()

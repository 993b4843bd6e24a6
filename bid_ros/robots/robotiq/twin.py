"""The Robotiq 2F-85 twin: the gripper's text protocol in front of any pair of simulated fingers."""

from __future__ import annotations

import math
import re
import socketserver
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from bid_ros.core.errors import ArmError
from bid_ros.robots.robotiq.registers import (
    CLOSED_REGISTER,
    FORCE_RANGE,
    MAX_OPENING,
    OPEN_REGISTER,
    PORT,
    SPEED_RANGE,
)

SLOWEST: Final = (SPEED_RANGE[0], FORCE_RANGE[0])  # of the automatic release
ACTIVATION_S: Final = 0.3
REACTION_S: Final = 0.03  # until the gripper behind the URCap has taken a request and says so in PRE and OBJ
LONGEST_REQUEST: Final = 256
MAX_CLIENTS: Final = 32
SETTABLE: Final = ("ACT", "GTO", "ATR", "ADR", "POS", "SPE", "FOR")
READABLE: Final = (*SETTABLE, "STA", "OBJ", "FLT", "PRE", "COU")
RESET, ACTIVATING, ACTIVE = 0, 1, 3  # of STA
NO_FAULT, DELAYED, NOT_ACTIVATED, RELEASING, RELEASED = 0, 5, 7, 11, 15  # of FLT
MOVING = 0  # of OBJ

Result = TypeVar("Result")


class Fingers(Protocol):
    """What the twin needs of a pair of fingers."""

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""

    @property
    def status(self) -> int:
        """0 moving, 1 blocked while opening, 2 blocked while closing, 3 at the target: Robotiq's gOBJ."""

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s and press with up to ``force`` N."""

    def stop(self) -> None:
        """Stop where the fingers are; what they hold stays held."""


class Within(Protocol):
    """Runs work where the fingers may be touched, such as the thread of the physics."""

    def __call__(self, work: Callable[[], Result]) -> Result:
        """Run ``work`` and return its result."""


class RobotiqTwin:
    """A gripper on port 63352 of an address, which a client of the URCap's socket cannot tell from the real one.

    It goes to ``POS`` while it is activated (``ACT``) and told to go (``GTO``); either at 0 stops the fingers, and
    ``ACT`` at 0 forgets the request as well. A request during the activation is carried out after it. ``ATR`` at 1
    moves the fingers slowly to the end that ``ADR`` names (1 open), after which only ``ACT`` at 0 helps. Not simulated:
    the run of the fingers to both ends during the activation, and the motor's current.

    Args:
        address: loopback address to serve.
        fingers: what it moves.
        within: how to reach ``fingers``; default is at once, in the thread of the client.
    """

    def __init__(self, address: str, fingers: Fingers, within: Within | None = None) -> None:
        self._address = address
        self._fingers = fingers
        self._within: Within = _at_once if within is None else within
        self._lock = threading.Lock()
        self._registers = dict.fromkeys(SETTABLE, 0)
        self._activated_at = self._moved_at = -math.inf
        self._position = self._echo = 0  # of the last motion and of the one before
        self._asked = self._released = False
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Serve; raises ArmError if the port is taken."""
        try:
            self._server = _Server((self._address, PORT), self.answer, self._pass_time)
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
            self._carry_out()
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
        was_on = bool(self._registers["ACT"])
        self._registers.update({name: int(value) for name, value in zip(names, values, strict=True)})
        self._obey(set(names), was_on)
        return True

    def _obey(self, changed: set[str], was_on: bool) -> None:
        registers = self._registers
        if not registers["ACT"]:
            if was_on or "ACT" in changed:
                registers["GTO"] = 0
                self._released = False
                self._stop()
            return
        if not was_on:
            self._activated_at = time.monotonic()
        if self._released:
            return
        if registers["ATR"]:
            self._released = True
            self._go(MAX_OPENING if registers["ADR"] else 0.0, *SLOWEST)
        elif changed & {"POS", "GTO"} or not was_on:
            if registers["GTO"]:
                self._asked = True
                self._carry_out()
            else:
                self._stop()

    def _pass_time(self) -> None:
        with self._lock:
            self._carry_out()

    def _carry_out(self) -> None:
        """Begin the motion that was asked for, if the gripper is active."""
        if self._asked and self._active:
            self._move()

    @property
    def _active(self) -> bool:
        return bool(self._registers["ACT"]) and time.monotonic() >= self._activated_at + ACTIVATION_S

    def _move(self) -> None:
        position = self._registers["POS"]
        share = (position - OPEN_REGISTER) / (CLOSED_REGISTER - OPEN_REGISTER)
        speed = _scaled(self._registers["SPE"], SPEED_RANGE)
        force = _scaled(self._registers["FOR"], FORCE_RANGE)
        self._echo, self._position, self._moved_at = self._read("PRE"), position, time.monotonic()
        self._go(MAX_OPENING * (1.0 - min(max(share, 0.0), 1.0)), speed, force)

    def _go(self, opening: float, speed: float, force: float) -> None:
        self._asked = False
        self._within(lambda: self._fingers.command(opening, speed, force))

    def _stop(self) -> None:
        self._asked = False
        self._within(self._fingers.stop)

    def _read(self, name: str) -> int:
        if name == "POS":
            share = 1.0 - self._within(lambda: self._fingers.opening) / MAX_OPENING
            return round(min(max(OPEN_REGISTER + share * (CLOSED_REGISTER - OPEN_REGISTER), 0), 255))
        taken = time.monotonic() >= self._moved_at + REACTION_S
        if name == "PRE":
            return self._position if taken else self._echo
        if name == "OBJ":
            told = self._state == ACTIVE and self._registers["GTO"] and not self._asked
            return int(self._within(lambda: self._fingers.status)) if told and taken else MOVING
        if name == "STA":
            return self._state
        if name == "FLT":
            return self._fault
        return 0 if name == "COU" else self._registers[name]

    @property
    def _state(self) -> int:
        if self._released or not self._registers["ACT"]:
            return RESET
        return ACTIVE if self._active else ACTIVATING

    @property
    def _fault(self) -> int:
        if not self._registers["ACT"]:
            return NOT_ACTIVATED
        if self._released:
            return RELEASING if self._within(lambda: self._fingers.status) == MOVING else RELEASED
        return DELAYED if self._asked else NO_FAULT


class _Server(socketserver.ThreadingTCPServer):
    """Accepts a limited number of clients, each on its own thread."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], answer: Callable[[str], str], pass_time: Callable[[], None]) -> None:
        self.answer = answer
        self._pass_time = pass_time
        self._places = threading.Semaphore(MAX_CLIENTS)
        super().__init__(address, _Client)

    def verify_request(self, request: object, client_address: object) -> bool:
        """Return whether there is a place for one more client; one that is not let in is closed."""
        return self._places.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a client and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def service_actions(self) -> None:
        """Let what waits for its time begin, whether a client asks or not."""
        with suppress(ArmError):  # the controller that moves the fingers stopped
            self._pass_time()


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

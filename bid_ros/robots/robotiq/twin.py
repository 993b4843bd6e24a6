"""The Robotiq 2F-85 twin: the gripper's text protocol in front of any pair of simulated fingers."""

import math
import re
import time
from typing import Final, Protocol

from bid_ros.robots.robotiq.registers import CLOSED_REGISTER, FORCE_RANGE, MAX_OPENING, OPEN_REGISTER, SPEED_RANGE
from bid_ros.sim.net import LineSession

SLOWEST: Final = (SPEED_RANGE[0], FORCE_RANGE[0])  # of the automatic release
ACTIVATION_S: Final = 0.3
REACTION_S: Final = 0.03  # until the gripper behind the URCap has taken a request and says so in PRE and OBJ
SETTABLE: Final = ("ACT", "GTO", "ATR", "ADR", "POS", "SPE", "FOR")
READABLE: Final = (*SETTABLE, "STA", "OBJ", "FLT", "PRE", "COU")
RESET, ACTIVATING, ACTIVE = 0, 1, 3  # of STA
NO_FAULT, DELAYED, NOT_ACTIVATED, RELEASING, RELEASED = 0, 5, 7, 11, 15  # of FLT
MOVING = 0  # of OBJ


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


class RobotiqTwin:
    """A gripper whose answers a client of the URCap's socket cannot tell from those of the real one.

    It goes to ``POS`` while it is activated (``ACT``) and told to go (``GTO``); either at 0 stops the fingers, and
    ``ACT`` at 0 forgets the request as well. A request during the activation is carried out after it. ``ATR`` at 1
    moves the fingers slowly to the end that ``ADR`` names (1 open), after which only ``ACT`` at 0 helps. Not simulated:
    the run of the fingers to both ends during the activation, and the motor's current.

    Args:
        fingers: what it moves.
    """

    def __init__(self, fingers: Fingers) -> None:
        self._fingers = fingers
        self._registers = dict.fromkeys(SETTABLE, 0)
        self._activated_at = self._moved_at = -math.inf
        self._position = self._echo = 0  # of the last motion and of the one before
        self._asked = self._released = self._stuck = False

    def answer(self, request: str) -> str:
        """Return the answer to one request line, as the gripper words it: ``ack``, ``POS 3`` or ``?``."""
        words = request.split()
        self.carry_out()
        if words[:1] == ["GET"] and len(words) == 2 and words[1] in READABLE:
            return f"{words[1]} {self._read(words[1])}\n"
        return "ack" if words[:1] == ["SET"] and self._set(words[1:]) else "?"

    def _set(self, words: list[str]) -> bool:
        names, values = words[::2], words[1::2]
        valid = all(re.fullmatch(r"[0-9]{1,3}", value) and int(value) <= 255 for value in values)
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
                self._released = self._stuck = False
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
                self.carry_out()
            else:
                self._stop()

    def emergency_stop(self) -> None:
        """Stop as after the robot's emergency stop: it says that it is active, and obeys nothing until it was reset."""
        self._stuck = True
        self._stop()

    def carry_out(self) -> None:
        """Begin the motion that was asked for, if the gripper is active. Call it now and then."""
        if self._asked and self._active and not self._stuck:
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
        self._fingers.command(opening, speed, force)

    def _stop(self) -> None:
        self._asked = False
        self._fingers.stop()

    def _read(self, name: str) -> int:
        if name == "POS":
            share = 1.0 - self._fingers.opening / MAX_OPENING
            return round(min(max(OPEN_REGISTER + share * (CLOSED_REGISTER - OPEN_REGISTER), 0), 255))
        taken = time.monotonic() >= self._moved_at + REACTION_S
        if name == "PRE":
            return self._position if taken else self._echo
        if name == "OBJ":
            told = self._state == ACTIVE and self._registers["GTO"] and not self._asked
            return int(self._fingers.status) if told and taken else MOVING
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
            return RELEASING if self._fingers.status == MOVING else RELEASED
        return DELAYED if self._asked or self._stuck else NO_FAULT


class GripperSession(LineSession):
    """One client of a gripper."""

    def __init__(self, twin: RobotiqTwin) -> None:
        self._twin = twin

    def take(self, line: str) -> None:
        """Answer a request."""
        self.send(self._twin.answer(line).encode())


def _scaled(register: int, span: tuple[float, float]) -> float:
    low, high = span
    return low + register / 255 * (high - low)

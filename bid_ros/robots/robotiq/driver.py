"""Robotiq 2F-85 over the text protocol that its URCap serves, as a :class:`bid_ros.robots.gripper.GripperDevice`.

Requests are lines, ``SET POS 128 SPE 255 GTO 1`` and ``GET POS``, answered by ``ack`` and ``POS 128``. The registers
are those of Robotiq's "2F-85 and 2F-140 instruction manual", section Control: all run from 0 to 255.
"""

import re
import socket
import time
from functools import partial
from typing import Annotated, Final

from pydantic import Field

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.core.settings import settings
from bid_ros.robots.gripper import HasEnded
from bid_ros.robots.robotiq.registers import CLOSED_REGISTER, FORCE_RANGE, MAX_OPENING, OPEN_REGISTER, PORT, SPEED_RANGE

ACTIVE: Final = 3  # of STA
MOVING: Final = 0  # of OBJ
DELAYED: Final = 5  # of FLT
FAULTS: Final = {
    DELAYED: "the action waits for the activation",
    7: "it must be activated first",
    8: "it is too hot",
    9: "its communication is lost",
    10: "its supply voltage is too low",
    11: "its automatic release is running",
    12: "internal fault",
    13: "the activation failed",
    14: "its current is too high",
    15: "its automatic release has ended: activate it again",
}
# An active gripper that says for this long after a command that it waits for its activation was in an emergency stop.
DELAYED_S: Final = 0.5
# `ack` has no end of line, and a value may have none: it is complete when nothing more of it comes for this long.
QUIET_S: Final = 0.05
POLL_S: Final = 0.02
LONGEST_ANSWER: Final = 256
VALUE: Final = re.compile(r"([A-Z]{3}) (\d{1,3}|\?)")


@settings(error=ArmError)
class RobotiqConfig:
    """A Robotiq 2F-85.

    Attributes:
        address: host name or IP address of the URCap; empty for the arm's own.
        open_width: opening of the open gripper, m.
        speed: speed of the opening, m/s.
        force: force when closing, N.
        open_register, closed_register: position registers when the pads are ``0.085`` m apart and when they touch. They
            depend on the mounted pads. Read them with ``GET POS`` in both positions.
        timeout_s: s to wait for an answer.
        activation_timeout_s, move_timeout_s: s to wait for the end of the activation and of a motion.

    Raises:
        ArmError: a value is out of its range.
    """

    address: str = ""
    open_width: Annotated[float, Field(ge=0.01, le=MAX_OPENING)] = MAX_OPENING
    speed: Annotated[float, Field(ge=SPEED_RANGE[0], le=SPEED_RANGE[1])] = 0.15
    force: Annotated[float, Field(ge=FORCE_RANGE[0], le=FORCE_RANGE[1])] = 40.0
    open_register: Annotated[int, Field(ge=0, le=100)] = OPEN_REGISTER
    closed_register: Annotated[int, Field(ge=150, le=255)] = CLOSED_REGISTER
    timeout_s: Annotated[float, Field(ge=0.1, le=5)] = 1.0
    activation_timeout_s: Annotated[float, Field(ge=1, le=30)] = 10.0
    move_timeout_s: Annotated[float, Field(ge=1, le=30)] = 8.0

    def register(self, width: float) -> int:
        """Return the position register of an opening in m, linear between the two calibrated ends."""
        share = 1.0 - min(max(width / MAX_OPENING, 0.0), 1.0)
        return round(self.open_register + share * (self.closed_register - self.open_register))

    def width(self, register: int) -> float:
        """Return the opening in m of a position register, 0 to 0.085."""
        share = (self.closed_register - register) / (self.closed_register - self.open_register)
        return MAX_OPENING * min(max(share, 0.0), 1.0)


class RobotiqGripper:
    """Reads and commands a Robotiq 2F-85 through its socket.

    The activation, in which the fingers run to both ends, belongs to the first command: connecting moves nothing. Later
    commands do not activate it again, as that would drop what it holds.
    One thread only; every method waits for the gripper, at most the configured times.

    Args:
        config: registers and limits.
        address: of the arm, used where the configuration names none.

    Raises:
        ArmError: nothing answers in time.
    """

    def __init__(self, config: RobotiqConfig, address: str = "") -> None:
        self._config, self._is_first = config, True
        self._where = f"gripper at {config.address or address}:{PORT}"
        try:
            self._socket = socket.create_connection((config.address or address, PORT), config.timeout_s)
        except OSError as error:
            raise RobotAwayError(
                f"{self._where}: {_reason(error)}: check that the gripper's URCap is installed and its cable plugged in"
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Disconnect; the fingers stay where they are. May be called twice."""
        self._socket.close()

    def width(self) -> float:
        """Return the measured opening in m.

        Raises:
            ArmError: the gripper does not answer, or has no value.
        """
        return self._config.width(self.get("POS"))

    def begin_open(self) -> HasEnded:
        """Begin to open to the configured width; activates the gripper first if it is not."""
        return self._begin(self._config.open_width)

    def begin_close(self) -> HasEnded:
        """Begin to close with the configured force on whatever is between the fingers; activates it first."""
        return self._begin(0.0)

    def get(self, name: str) -> int:
        """Return a register, 0 to 255.

        Raises:
            ArmError: no answer, an answer that is none, or the gripper has no value because it is off.
        """
        answer = self._ask(f"GET {name}")
        found = VALUE.fullmatch(answer)
        if found is None or found[1] != name:
            raise ArmError(f"{self._where} answered {answer!r} to GET {name}; valid is '{name} 0' to '{name} 255'")
        if found[2] == "?" or int(found[2]) > 255:
            raise ArmError(f"{self._where} has no value of {name}: check its power and the robot's emergency stop")
        return int(found[2])

    def set(self, **registers: int) -> None:
        """Set registers in one request.

        Raises:
            ArmError: no answer, or the gripper refuses.
        """
        request = "SET " + " ".join(f"{name} {value}" for name, value in registers.items())
        answer = self._ask(request)
        if answer != "ack":
            raise ArmError(f"{self._where} answered {answer!r} to {request}; valid is 'ack'")

    def _begin(self, width: float) -> HasEnded:
        if self.get("STA") != ACTIVE or (self._is_first and self._fault() == DELAYED):
            self._activate()
        self._is_first = False
        config, position = self._config, self._config.register(width)
        speed, force = _register(config.speed, SPEED_RANGE), _register(config.force, FORCE_RANGE)
        self.set(POS=position, SPE=speed, FOR=force, GTO=1)
        return partial(self._ended, position, time.monotonic())

    def _ended(self, position: int, begun: float) -> bool:
        """See :data:`HasEnded`. A motion ends when the fingers arrived, met something, or took too long."""
        # OBJ still speaks of the motion before until PRE, the position asked for, is the new one.
        moves = self.get("PRE") != position or self.get("OBJ") == MOVING
        taken_s = time.monotonic() - begun
        if moves and taken_s > DELAYED_S and self._fault() == DELAYED:
            raise ArmError(
                f"{self._where} does not move since an emergency stop (fault {DELAYED}): take out what it holds, then "
                "reset: it opens and closes once"
            )
        if moves and taken_s < self._config.move_timeout_s:
            return False
        self.check()
        return True

    def _activate(self) -> None:
        self.set(ACT=0)
        self._await(0, "reset")
        self.set(ACT=1)
        self._await(ACTIVE, "activated")
        self.check()

    def _await(self, status: int, what: str) -> None:
        end = time.monotonic() + self._config.activation_timeout_s
        while self.get("STA") != status:
            if time.monotonic() > end:
                limit = self._config.activation_timeout_s
                raise ArmError(f"{self._where} was not {what} within {limit:g} s: check what blocks its fingers")
            time.sleep(POLL_S)

    def check(self) -> None:
        """Raise ArmError if the gripper reports a fault; a delayed action is none."""
        fault = self._fault()
        if fault not in (0, DELAYED):
            raise ArmError(f"{self._where} reports fault {fault}: {FAULTS.get(fault, 'unknown')}")

    def _fault(self) -> int:
        return self.get("FLT") & 0x0F

    def _ask(self, request: str) -> str:
        try:
            self._forget()
            self._socket.sendall(request.encode() + b"\n")
            return self._answer()
        except OSError as error:
            # What is still under way would be taken for the next answer, so the connection is of no more use.
            self._socket.close()
            raise ArmError(
                f"{self._where}: {_reason(error)} after {request}: check its cable and power, then reset"
            ) from error

    def _forget(self) -> None:
        """Drop what came after the last answer, such as its end of line."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(LONGEST_ANSWER):
                pass
        except BlockingIOError:
            pass

    def _answer(self) -> str:
        end = time.monotonic() + self._config.timeout_s
        received = b""
        while b"\n" not in received and received != b"ack" and len(received) < LONGEST_ANSWER:
            complete = VALUE.fullmatch(received.decode("ascii", "replace")) is not None
            remaining = max(0.001, end - time.monotonic())
            self._socket.settimeout(min(QUIET_S, remaining) if complete else remaining)
            try:
                part = self._socket.recv(LONGEST_ANSWER)
            except TimeoutError:
                if complete:
                    break
                raise
            if not part:
                raise ConnectionError("the connection was closed")
            # An end of line may come late, behind the answer before.
            received = (received + part).lstrip()
        return received.decode("ascii", "replace").split("\n")[0].strip()


def _register(value: float, span: tuple[float, float]) -> int:
    low, high = span
    return round(255 * (value - low) / (high - low))


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or str(error)

"""The Dashboard server: one text command a line, one answer a line, in PolyScope's words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from bid_ros.robots.ur.twin.machine import Machine
from bid_ros.robots.ur.twin.net import Connection, Misbehaviour
from bid_ros.robots.ur.twin.status import RuntimeState

DASHBOARD_PORT: Final = 29999
MAX_LINE: Final = 4096
SERIAL_NUMBER: Final = "20195500001"
GREETING: Final = "Connected: Universal Robots Dashboard Server"
NOT_REMOTE: Final = (
    "Command is not allowed due to safety reasons, please switch robot to Remote Control mode and reconnect to port "
    f"{DASHBOARD_PORT}"
)
UNLOCK_TOO_EARLY: Final = (
    "Cannot unlock protective stop until 5s after occurrence. Always inspect cause of protective stop before unlocking"
)
PROGRAM: Final = "rtde_control"
ROLES: Final = ("programmer", "operator", "none", "locked", "restricted")
LOG = logging.getLogger(__name__)

Answer = Callable[[str], str]


class DashboardSession:
    """One Dashboard client.

    Args:
        machine: the controller.
        connection: its socket.
        version: of the controller software.
        has_remote_control: whether this generation knows local and remote control (e-Series).
    """

    def __init__(
        self, machine: Machine, connection: Connection, version: Sequence[int], has_remote_control: bool
    ) -> None:
        self._machine = machine
        self._connection = connection
        self._version = ".".join(map(str, version))
        self._has_remote_control = has_remote_control
        # What a client may do is settled when it connects: PolyScope asks it to connect again after a switch.
        self._remote_at_start = machine.status.remote_control
        self._line = bytearray()
        self._reading: dict[str, Answer] = {
            "robotmode": lambda _: f"Robotmode: {machine.status.robot_mode.name}",
            "safetymode": lambda _: f"Safetymode: {machine.status.safety_mode.name}",
            "safetystatus": lambda _: f"Safetystatus: {machine.status.safety_mode.name}",
            "running": lambda _: f"Program running: {str(self._running).lower()}",
            "programstate": lambda _: f"{self._program_state} {PROGRAM if self._running else '<unnamed>'}",
            "polyscopeversion": lambda _: f"URSoftware {self._version} (twin)",
            "get robot model": lambda _: "UR5",
            "get serial number": lambda _: SERIAL_NUMBER,
            "get loaded program": lambda _: "No program loaded",
            "isprogramsaved": lambda _: "false <unnamed>",
            "addtolog": self._log,
            "popup": lambda _: "showing popup",
            "close popup": lambda _: "closing popup",
            "quit": _doing(connection.close_after_sending, "Disconnected"),
        }
        if has_remote_control:
            self._reading["is in remote control"] = lambda _: str(machine.status.remote_control).lower()
        self._acting: dict[str, Answer] = {
            "load installation": lambda name: f"File not found: {name}",
            "load": lambda name: f"File not found: {name}",
            "play": lambda _: "Starting program" if machine.play() else "Failed to execute: play",
            "pause": lambda _: "Pausing program" if machine.pause() else "Failed to execute: pause",
            "stop": _doing(lambda: machine.end_program("stopped at the dashboard"), "Stopped"),
            "power on": _doing(lambda: machine.status.power_on(machine.clock_s), "Powering on"),
            "power off": _doing(machine.power_off, "Powering off"),
            "brake release": _doing(lambda: machine.status.brake_release(machine.clock_s), "Brake releasing"),
            "unlock protective stop": self._unlock,
            "close safety popup": lambda _: "closing safety popup",
            "restart safety": lambda _: "Failed to execute: restart safety",
            "shutdown": lambda _: "Failed to execute: shutdown",
            "setuserrole": self._set_user_role,
        }
        self._say(GREETING)

    @property
    def _running(self) -> bool:
        return self._machine.runtime in (RuntimeState.PLAYING, RuntimeState.PAUSING, RuntimeState.PAUSED)

    @property
    def _program_state(self) -> str:
        if self._machine.runtime is RuntimeState.PLAYING:
            return "PLAYING"
        return "PAUSED" if self._running else "STOPPED"

    def received(self, data: bytes) -> None:
        """Answer every complete line.

        Raises:
            Misbehaviour: if a line does not end.
        """
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = rest
        for line in lines:
            self._say(self._answer(line.decode("utf-8", "replace").strip()))
        if len(self._line) > MAX_LINE:
            raise Misbehaviour(f"{self._connection.name} sent a line of over {MAX_LINE} bytes")

    def lost(self) -> None:
        """Nothing is held for a Dashboard client."""

    def _say(self, text: str) -> None:
        self._connection.send(text.encode() + b"\n")

    def _answer(self, line: str) -> str:
        for commands, needs_remote in ((self._reading, False), (self._acting, True)):
            for name, answer in commands.items():
                if line.lower() == name or line.lower().startswith(name + " "):
                    return NOT_REMOTE if needs_remote and not self._may_act else answer(line[len(name) :].strip())
        return f'could not understand: "{line[:80]}"'

    @property
    def _may_act(self) -> bool:
        return not self._has_remote_control or (self._remote_at_start and self._machine.status.remote_control)

    def _log(self, text: str) -> str:
        LOG.info("UR twin: dashboard log: %s", text)
        return "Added log message"

    def _unlock(self, _: str) -> str:
        released = self._machine.status.unlock(self._machine.clock_s)
        return "Protective stop releasing" if released else UNLOCK_TOO_EARLY

    def _set_user_role(self, role: str) -> str:
        return f"Setting user role: {role}" if role in ROLES else f"Failed setting user role: {role}"


def _doing(action: Callable[[], object], said: str) -> Answer:
    """Return the answer to a command that always succeeds: do it, and say so."""

    def answer(_: str) -> str:
        action()
        return said

    return answer

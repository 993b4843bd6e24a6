"""The Dashboard server: one text command a line, one answer a line, in PolyScope's words."""

from collections.abc import Callable
from typing import Final

from bid_ros.robots.ur.twin.machine import RuntimeState, UrMachine
from bid_ros.sim.net import LineSession

DASHBOARD_PORT: Final = 29999
SERIAL_NUMBER: Final = "20195500001"
GREETING: Final = "Connected: Universal Robots Dashboard Server"
GOODBYE: Final = "Disconnected"
NOT_REMOTE: Final = (
    "Command is not allowed due to safety reasons, please switch robot to Remote Control mode and reconnect to port "
    f"{DASHBOARD_PORT}"
)
UNLOCK_TOO_EARLY: Final = (
    "Cannot unlock protective stop until 5s after occurrence. Always inspect cause of protective stop before unlocking"
)

Answer = Callable[[str], str]


class DashboardSession(LineSession):
    """One Dashboard client; ``machine`` is the controller."""

    def __init__(self, machine: UrMachine) -> None:
        self._machine = machine
        # What a client may do is settled when it connects: PolyScope asks it to connect again after a switch.
        self._remote_at_start = machine.remote_control
        self._reading: dict[str, Answer] = {
            "robotmode": lambda _: f"Robotmode: {machine.robot_mode.name}",
            "safetymode": lambda _: f"Safetymode: {machine.safety_mode.name}",
            "running": lambda _: f"Program running: {str(machine.runtime is RuntimeState.PLAYING).lower()}",
            "polyscopeversion": lambda _: f"URSoftware {'.'.join(map(str, machine.config.version))} (twin)",
            "get serial number": lambda _: SERIAL_NUMBER,
            "quit": lambda _: GOODBYE,
        }
        if machine.config.e_series:
            self._reading["is in remote control"] = lambda _: str(machine.remote_control).lower()
        self._acting: dict[str, Answer] = {
            "stop": _doing(lambda: machine.end_program("stopped at the dashboard"), "Stopped"),
            "power on": _doing(machine.power_on, "Powering on"),
            "power off": _doing(machine.power_off, "Powering off"),
            "brake release": _doing(machine.brake_release, "Brake releasing"),
            "unlock protective stop": lambda _: "Protective stop releasing" if machine.unlock() else UNLOCK_TOO_EARLY,
            "close safety popup": lambda _: "closing safety popup",
        }

    def opened(self) -> None:
        """Greet the client."""
        self._say(GREETING)

    def take(self, line: str) -> None:
        """Obey a line, and answer it."""
        answer = self._answer(line)
        self._say(answer)
        if answer == GOODBYE:
            self.transport.close()

    def _say(self, text: str) -> None:
        self.send(text.encode() + b"\n")

    def _answer(self, line: str) -> str:
        for commands, needs_remote in ((self._reading, False), (self._acting, True)):
            for name, answer in commands.items():
                if line.lower() == name or line.lower().startswith(name + " "):
                    return NOT_REMOTE if needs_remote and not self._may_act else answer(line[len(name) :].strip())
        return f'could not understand: "{line[:80]}"'

    @property
    def _may_act(self) -> bool:
        machine = self._machine
        return not machine.config.e_series or (self._remote_at_start and machine.remote_control)


def _doing(action: Callable[[], object], said: str) -> Answer:
    """Return the answer to a command that always succeeds: do it, and say so."""

    def answer(_: str) -> str:
        action()
        return said

    return answer

"""The UR twin: a controller that the unmodified ur_rtde client cannot tell from a robot for what bid_ros uses.

It serves RTDE (30004), the Dashboard (29999) and the client interfaces (30001 to 30003) of one address, and steps an
arm at the rate of its generation. ``python -m bid_ros.robots.ur.twin --address 127.0.0.2 --no-physics`` runs one alone.
Run it in a process of its own: ur_rtde's constructors hold Python's lock while they wait for the controller's answers,
so a twin in the same process cannot give them.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from bid_ros.core.checks import check_range
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5, UR5E, Kinematics
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT
from bid_ros.robots.ur.twin.dashboard import DASHBOARD_PORT, DashboardSession
from bid_ros.robots.ur.twin.inputs import Inputs
from bid_ros.robots.ur.twin.machine import Machine
from bid_ros.robots.ur.twin.net import Connection, Switchboard
from bid_ros.robots.ur.twin.outputs import write_constants, write_outputs
from bid_ros.robots.ur.twin.plant import Plant
from bid_ros.robots.ur.twin.primary import PRIMARY_PORT, SECONDARY_PORT, PrimaryServer
from bid_ros.robots.ur.twin.recipes import E_SERIES_OUTPUTS, OUTPUT_TYPES, FieldTable
from bid_ros.robots.ur.twin.robot import Robot
from bid_ros.robots.ur.twin.rtde_server import RtdeServer
from bid_ros.robots.ur.twin.script_port import SCRIPT_PORT, ControlScript, ScriptSession
from bid_ros.robots.ur.twin.status import Status
from bid_ros.sim.loop import StepLoop

RATES: Final = {"e-series": 500, "cb3": 125}
ARMS: Final = {"e-series": UR5E, "cb3": UR5}
VERSIONS: Final = {"e-series": (5, 11, 0, 108249), "cb3": (3, 15, 0, 106331)}
CATCH_UP_NS: Final = 10_000_000  # backlog that is made up for; what is older is left out and counted


@dataclass(frozen=True)
class UrControllerConfig:
    """Which controller the twin is.

    Attributes:
        address: IPv4 address of this computer to serve on; several controllers take one of 127.0.0.x each.
        generation: ``e-series`` (500 Hz) or ``cb3`` (125 Hz).
        version: of the controller software, four numbers; empty: a usual one of the generation.
        remote_control: whether remote control is switched on at the pendant.
        unlock_delay_s: s after a protective stop in which it cannot be released; a robot's is 5 s.

    Raises:
        ArmError: a value is not valid.
    """

    address: str = "127.0.0.1"
    generation: str = "e-series"
    version: tuple[int, ...] = ()
    remote_control: bool = True
    unlock_delay_s: float = 5.0

    def __post_init__(self) -> None:
        try:
            ipaddress.IPv4Address(self.address)
        except ValueError as error:
            raise ArmError(f"UR twin: address is '{self.address}'; valid is an IPv4 address") from error
        if self.generation not in RATES:
            raise ArmError(f"UR twin: generation is '{self.generation}'; valid are {', '.join(RATES)}")
        if not self.version:
            object.__setattr__(self, "version", VERSIONS[self.generation])
        if len(self.version) != 4 or any(not 0 <= number < 1 << 32 for number in self.version):
            raise ArmError(f"UR twin: version is {self.version}; valid are four numbers from 0 on")
        check_range("UR twin", "unlock_delay_s", self.unlock_delay_s, 0.0, 60.0, ArmError, "s")

    @property
    def rate(self) -> int:
        """Hz of the control cycle."""
        return RATES[self.generation]


class UrController:
    """Servers, control cycle and arm of one UR, on a thread of its own.

    Args:
        config: which controller it is.
        plant: the arm it moves; only this thread touches it from :meth:`start` on.
        kinematics: of the arm.

    Attributes:
        hostname: address a client connects to.
        loop: runs the control cycle, and what others have to do between two cycles.
    """

    def __init__(self, config: UrControllerConfig, plant: Plant, kinematics: Kinematics = UR5E) -> None:
        self._config = config
        self.hostname = config.address
        self._e_series = config.generation == "e-series"
        self._switchboard = Switchboard(config.address)
        types = {name: kind for name, kind in OUTPUT_TYPES.items() if self._e_series or name not in E_SERIES_OUTPUTS}
        self._inputs, self._outputs = Inputs(), FieldTable(types)
        status = Status(config.remote_control, config.unlock_delay_s)
        self._machine = Machine(status, Robot(plant, kinematics), self._inputs, self._outputs, 1.0 / config.rate)
        self._rtde = RtdeServer(config.version, config.rate, self._inputs, self._outputs)
        self._primary = PrimaryServer(config.version, self._machine, config.rate, self._run_script)
        self.loop = StepLoop(
            "the UR twin",
            1_000_000_000 // config.rate,
            self._cycle,
            CATCH_UP_NS,
            left_out=lambda late_ns: self._machine.pass_by(late_ns / 1e9),
            failed=self._switchboard.close,  # nobody shall wait for a controller that is gone
        )
        self._cycles = self._busy_ns = self._longest_ns = 0
        write_constants(self._outputs)
        write_outputs(self._outputs, self._machine, 0.0)

    def start(self) -> None:
        """Serve the robot and run the control cycle.

        Raises:
            ArmError: if a port is taken or the address is not one of this computer.
        """
        try:
            self._switchboard.listen(RTDE_PORT, "RTDE", self._rtde.open_session)
            self._switchboard.listen(DASHBOARD_PORT, "dashboard", self._open_dashboard)
            for port, name, told in ((PRIMARY_PORT, "primary", True), (SECONDARY_PORT, "secondary", False)):
                open_session = partial(self._primary.open_session, messages=told)
                self._switchboard.listen(port, f"{name} interface", open_session)
            self._switchboard.listen(SCRIPT_PORT, "script port", self._open_script)
        except ArmError:
            self._switchboard.close()
            raise
        self.loop.start()

    def stop(self) -> None:
        """End the control cycle and close every connection; calling it again does nothing."""
        self.loop.stop()
        self._switchboard.close()

    def protective_stop(self, reason: str) -> None:
        """Trigger a protective stop, as a collision would; raises ArmError if the twin does not run."""
        self.loop.call(lambda: self._machine.protective_stop(reason))

    def emergency_stop(self, pressed: bool) -> None:
        """Press or release the emergency stop; raises ArmError if the twin does not run."""
        press, release = self._machine.emergency_stop, self._machine.status.release_emergency_stop
        self.loop.call(press if pressed else release)

    def set_local_mode(self, local: bool) -> None:
        """Switch the pendant to local or remote control; raises ArmError if the twin does not run.

        A program that runs goes on. In local mode the e-Series takes no scripts and no dashboard commands that act.
        """

        def switch() -> None:
            self._machine.status.remote_control = not local

        self.loop.call(switch)

    def stop_program(self) -> None:
        """Stop the program that runs, as the pendant does in either mode; raises ArmError if the twin does not run."""
        self.loop.call(lambda: self._machine.end_program("the pendant stopped it"))

    def power_off(self) -> None:
        """Switch the arm off; raises ArmError if the twin does not run."""
        self.loop.call(self._machine.power_off)

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept and who is connected.

        ``real_time_factor`` over the last 5 s (1 is real time), ``overruns``: times a backlog over 10 ms was left
        out, ``lost_s``: their sum, ``cycles`` since the start, ``cycle_ms`` and ``longest_cycle_ms``: work of a
        cycle, mean and longest, ``clients``, ``dropped``: connections ended for a client's fault, ``left_out``: data
        packages that clients were too slow for.
        """
        kept = self.loop.statistics()
        values = {
            "cycles": kept.pop("steps"),
            "cycle_ms": self._busy_ns / 1e6 / max(1, self._cycles),
            "longest_cycle_ms": self._longest_ns / 1e6,
            "clients": self._switchboard.clients,
            "dropped": self._switchboard.dropped,
            "left_out": self._rtde.left_out,
        }
        return kept | {key: float(value) for key, value in values.items()}

    def _open_dashboard(self, connection: Connection) -> DashboardSession:
        return DashboardSession(self._machine, connection, self._config.version, self._e_series)

    def _open_script(self, connection: Connection) -> ScriptSession:
        def refuse(_: str) -> None:
            connection.reset()
            self._machine.release_uploader()

        return ScriptSession(connection, self._run_script, refuse)

    def _run_script(self, script: ControlScript) -> None:
        if self._e_series and not self._machine.status.remote_control:
            self._machine.refuse("the robot is in local control")
        else:
            self._machine.run(script)

    def _cycle(self) -> None:
        begin = time.monotonic_ns()
        self._switchboard.poll()
        self._machine.cycle()
        write_outputs(self._outputs, self._machine, (time.monotonic_ns() - begin) / 1e9)
        self._rtde.publish(self._switchboard)
        self._primary.publish(self._switchboard)
        self._cycles += 1
        busy = time.monotonic_ns() - begin
        self._busy_ns += busy
        self._longest_ns = max(self._longest_ns, busy)

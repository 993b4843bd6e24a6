"""The UR twin: a controller that the unmodified ur_rtde client cannot tell from a robot for what bid_ros uses.

It serves RTDE (30004), the Dashboard (29999) and the script ports (30001 to 30003) of one address, and steps an arm at
the rate of its generation. ``python -m bid_ros.robots.ur.twin --address 127.0.0.2 --no-physics`` runs one alone.
Run it in a process of its own: ur_rtde's constructors hold Python's lock while they wait for the controller's answers,
so a twin in the same process cannot give them.
"""

import time
from functools import partial

from bid_ros.core.errors import ArmError
from bid_ros.robots.robotiq.registers import PORT as GRIPPER_PORT
from bid_ros.robots.robotiq.twin import GripperSession, RobotiqTwin
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.dashboard import DASHBOARD_PORT, DashboardSession
from bid_ros.robots.ur.twin.machine import UrMachine
from bid_ros.robots.ur.twin.plant import Plant
from bid_ros.robots.ur.twin.rtde_server import RtdeSession, write_constants, write_outputs
from bid_ros.robots.ur.twin.script_port import OTHER_PORTS, SCRIPT_PORT, ScriptSession
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.net import Switchboard


class UrController:
    """Servers, control cycle and arm of one UR, on a thread of its own.

    Args:
        config: which controller it is.
        plant: the arm it moves; only this thread touches it from :meth:`start` on.
        kinematics: of the arm.
        gripper: behind the port of its URCap; None without one.

    Attributes:
        hostname: address a client connects to.
        machine: the controller itself, for the pendant's buttons; touch it in the loop only.
        loop: runs the control cycle, and what others have to do between two cycles.
    """

    def __init__(
        self,
        config: UrControllerConfig,
        plant: Plant,
        kinematics: Kinematics = UR5E,
        gripper: RobotiqTwin | None = None,
    ) -> None:
        self.hostname = config.address
        self.machine = UrMachine(config, plant, kinematics)
        self._gripper = gripper
        self._switchboard = Switchboard(config.address)
        self.loop = StepLoop(
            "the UR twin",
            1_000_000_000 // config.rate,
            self._cycle,
            left_out=self.machine.pass_by,
            failed=self._switchboard.close,  # nobody shall wait for a controller that is gone
        )
        self._busy_ns = self._longest_ns = 0
        self._plugged = True
        write_constants(self.machine.outputs)
        write_outputs(self.machine)

    def start(self) -> None:
        """Serve the robot and run the control cycle.

        Raises:
            ArmError: if a port is taken or the address is not one of this computer.
        """
        machine, listen = self.machine, self._switchboard.listen
        try:
            listen(RTDE_PORT, "RTDE", partial(RtdeSession, machine))
            listen(DASHBOARD_PORT, "dashboard", partial(DashboardSession, machine))
            for port in (SCRIPT_PORT, *OTHER_PORTS):
                listen(port, "script port", partial(ScriptSession, machine))
            if self._gripper is not None:
                listen(GRIPPER_PORT, "gripper", partial(GripperSession, self._gripper))
        except ArmError:
            self._switchboard.close()
            raise
        self.loop.start()

    def stop(self) -> None:
        """End the control cycle and close every connection; calling it again does nothing."""
        self.loop.stop()
        self._switchboard.close()

    def unplug(self) -> None:
        """Pull the network cable out: nothing is heard or said any more. The arm and its program go on. In the loop."""
        self._plugged = False

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept and who is connected.

        ``real_time_factor`` over the last 5 s (1 is real time), ``overruns``: times a backlog over 20 ms was left
        out, ``lost_s``: their sum, ``cycles`` since the start, ``cycle_ms`` and ``longest_cycle_ms``: work of a
        cycle, mean and longest, ``clients``, ``dropped``: connections ended for a client's fault, ``left_out``:
        packages that clients were too slow for.
        """
        kept = self.loop.statistics()
        cycles = kept.pop("steps")
        values: dict[str, float] = {
            "cycles": cycles,
            "cycle_ms": self._busy_ns / 1e6 / max(1.0, cycles),
            "longest_cycle_ms": self._longest_ns / 1e6,
            "clients": len(self._switchboard.sessions),
            "dropped": self._switchboard.dropped,
            "left_out": self._switchboard.left_out,
        }
        return kept | values

    def _cycle(self) -> None:
        begin = time.monotonic_ns()
        if self._plugged:
            self._switchboard.poll()
        if self._gripper is not None:
            self._gripper.carry_out()
        self.machine.cycle()
        write_outputs(self.machine)
        if self._plugged:
            self._switchboard.publish()
        busy = time.monotonic_ns() - begin
        self._busy_ns += busy
        self._longest_ns = max(self._longest_ns, busy)

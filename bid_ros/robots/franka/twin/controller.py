"""The robot's controller without a clock: both services and the physics, one cycle of 1 ms at a time."""

import time
from typing import Final

from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.hand_service import HandService
from bid_ros.robots.franka.twin.messages import HAND, ROBOT
from bid_ros.robots.franka.twin.robot_service import RobotService
from bid_ros.robots.franka.twin.service import FciService, check_loopback
from bid_ros.robots.franka.twin.watchdog import PUBLISHED, Patience

STEP_NS: Final = 1_000_000


class FrankaController:
    """Serves the robot of a simulator on a loopback address.

    Args:
        simulator: with one robot, not started.
        hostnames: loopback addresses to serve; the first one whose ports are free is taken.
        patience: what the robot forgives its client's computer.

    Attributes:
        hostname: the address that is served; empty before :meth:`start`.
        robot, hand: the two services; there from the start on.
    """

    robot: RobotService
    hand: HandService

    def __init__(self, simulator: MujocoSimulator, *hostnames: str, patience: Patience = PUBLISHED) -> None:
        self._simulator, self._patience = simulator, patience
        self._hostnames = hostnames
        self.hostname = ""
        self._begun_ns = 0
        self._services: tuple[FciService, ...] = ()

    def start(self) -> None:
        """Build the physics and open the ports.

        Raises:
            ArmError: if an address is not one of this computer alone, or none is free.
        """
        for hostname in self._hostnames:
            check_loopback(hostname)
        self._simulator.init()
        robot: FastFrankaRobot = self._simulator.robots[0]
        self._simulator.start()
        failures = [self._open(robot, hostname) for hostname in self._hostnames if not self.hostname]
        if not self.hostname:
            raise ArmError(
                f"the twin cannot serve {', '.join(self._hostnames)}: ports {ROBOT.port} and {HAND.port} are taken "
                f"({failures[-1]})"
            )
        self.robot.drive()
        self._simulator.step()  # there is a state from now on

    def cycle(self, counted: bool = True) -> None:
        """Serve the clients, step the physics, tell the new state.

        Args:
            counted: whether the client has had its time to answer the last state.
        """
        self.robot.cycle(counted)
        self.hand.cycle()
        self._simulator.step()
        self.robot.send_state()
        self.hand.send_state()

    def tick(self) -> None:
        """Pass a cycle in real time. One right after another makes up for lost time, and is not counted."""
        begun, self._begun_ns = self._begun_ns, time.monotonic_ns()
        self.cycle(counted=self._begun_ns - begun >= STEP_NS // 2)

    def unplug(self) -> None:
        """Pull the network cable out: no service hears or says anything any more. The physics goes on."""
        for service in self._services:
            service.plugged = False

    def close(self) -> None:
        """Disconnect the clients and free the ports; calling it again does nothing."""
        for service in self._services:
            service.close()

    def _open(self, robot: FastFrankaRobot, hostname: str) -> str:
        """Open both ports of an address; return why it is not possible, or nothing."""
        self.robot, self.hand = RobotService(robot, self._patience), HandService(robot)
        self._services = (self.robot, self.hand)
        try:
            for service in self._services:
                service.open(hostname)
        except OSError as error:
            self.close()
            return str(error)
        self.hostname = hostname
        return ""

"""Serves one simulated UR5e or, as a ``cb3``, UR5 with a gripper on a free loopback address and prints the address.

Arguments: ``e-series`` or ``cb3``, and ``address=`` or a software version such as ``5.11.0.0`` if it matters. It then
obeys the commands of the pendant (:mod:`bid_ros.robots.ur.twin.pendant`) on its standard input, and ``last motion``,
which is answered by the steady time in ns at which a joint last moved.
"""

import sys
import time

import numpy as np
from kinematic_fingers import KinematicFingers

from bid_ros.core.errors import ArmError
from bid_ros.robots.process import go_first
from bid_ros.robots.robotiq.twin import RobotiqTwin
from bid_ros.robots.ur.twin.config import ARMS, UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.pendant import INITIAL_Q, operate
from bid_ros.robots.ur.twin.plant import KinematicPlant

# Not 127.0.0.x, where a twin of somebody's running system may be.
CANDIDATES = [f"127.78.{i}.1" for i in range(1, 250)]
MOVES = 0.01  # rad/s


class WatchedPlant(KinematicPlant):
    """Knows when it last moved, whoever is still connected."""

    def __init__(self):
        super().__init__(INITIAL_Q)
        self.moved_ns = 0

    def step(self, target_q, target_qd, dt):
        super().step(target_q, target_qd, dt)
        if np.abs(target_qd).max() > MOVES:
            self.moved_ns = time.monotonic_ns()


def served(generation, version=()):
    for address in addresses or CANDIDATES:
        plant = WatchedPlant()
        config = UrControllerConfig(address, generation, version, unlock_delay_s=0.5)
        twin = UrController(config, plant, ARMS[generation], RobotiqTwin(KinematicFingers()))
        try:
            twin.start()
        except ArmError:
            continue
        return twin, plant
    raise SystemExit("no free address")


# A robot's controller shares its computer with nobody; this one at least goes first.
go_first()
addresses = [text.removeprefix("address=") for text in sys.argv[2:] if text.startswith("address=")]
versions = [tuple(map(int, text.split("."))) for text in sys.argv[2:] if not text.startswith("address=")]
twin, plant = served(sys.argv[1], *versions)
print(twin.hostname, flush=True)
for line in sys.stdin:
    if line.strip() == "last motion":
        print(twin.loop.call(lambda: plant.moved_ns), flush=True)
    else:
        operate(twin, [line], sys.stdout)

"""Serves one simulated FR3 on a free loopback address, or ``address=``, prints it, and ends when its stdin closes.

Lines there are commands: ``speed`` is answered with that of the fastest joint, rad/s; ``forget`` makes its hand one
that was not homed, as one that was switched on anew; after ``carry 0.5`` the robot's estimate of external forces is as
if its hand held so many kg, less what a client has set as load; after ``drift 0.1`` it says that its joints turn at so
many rad/s.
"""

import sys
from dataclasses import replace
from typing import Any

from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.controller import STEP_NS, FrankaController
from bid_ros.robots.franka.twin.watchdog import SHARED
from bid_ros.robots.process import go_first
from bid_ros.sim.loop import StepLoop

# Not 127.0.0.1, where a twin of somebody's running system may be.
CANDIDATES = [f"127.77.{i}.1" for i in range(1, 250)]

GRAVITY = 9.81  # m/s^2


class ToldRobot(FastFrankaRobot):
    """A robot that tells of something that its physics does not know."""

    carry = 0.0  # kg
    drift = 0.0  # rad/s

    @property
    def state(self) -> Any:
        """The state with what is told."""
        state = super().state
        if not (self.carry or self.drift):
            return state
        force = (0.0, 0.0, -GRAVITY * (self.carry - state.m_load), 0.0, 0.0, 0.0)
        return state.replace(O_F_ext_hat_K=force, dq=[speed + self.drift for speed in state.dq])


# A robot's controller shares its computer with nobody; this one at least goes first.
go_first()
simulator = MujocoSimulator()
robot = simulator.add_robot(initial_hand_width=0.08)
ToldRobot.take_over(robot)
addresses = [text.removeprefix("address=") for text in sys.argv[1:]]
# A computer that stands still for part of a second, as virtual ones do, is no failure of what is tested here.
patience = replace(SHARED, ended=1000)
controller = FrankaController(simulator, *(addresses or CANDIDATES), patience=patience)
controller.start()
print(controller.hostname, flush=True)
loop = StepLoop("the robot", STEP_NS, controller.tick)
loop.start()
for line in sys.stdin:
    if line.strip() == "speed":
        print(max(map(abs, robot._get_state().dq)), flush=True)
        continue
    if line.startswith(("carry", "drift")):
        name, value = line.split()
        setattr(robot, name, float(value))
    else:
        loop.call(controller.hand.forget_homing)
    print("ok", flush=True)
loop.stop()
controller.close()

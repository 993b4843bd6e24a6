"""Serves one simulated FR3 on a free loopback address, prints the address, and ends when its stdin closes.

Two lines there are commands: ``speed`` is answered with that of the fastest joint, rad/s; ``forget`` makes its hand one
that was not homed, as one that was switched on anew.
"""

import sys

from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.controller import STEP_NS, FrankaController
from bid_ros.robots.franka.twin.watchdog import SHARED
from bid_ros.robots.process import go_first
from bid_ros.sim.loop import StepLoop

# Not 127.0.0.1, where a twin of somebody's running system may be.
CANDIDATES = [f"127.77.{i}.1" for i in range(1, 250)]

# A robot's controller shares its computer with nobody; this one at least goes first.
go_first()
simulator = MujocoSimulator()
robot = simulator.add_robot(initial_hand_width=0.08)
FastFrankaRobot.take_over(robot)
controller = FrankaController(simulator, *CANDIDATES, patience=SHARED)
controller.start()
print(controller.hostname, flush=True)
loop = StepLoop("the robot", STEP_NS, controller.tick, 5 * STEP_NS)
loop.start()
for line in sys.stdin:
    if line.strip() == "speed":
        print(max(map(abs, robot._get_state().dq)), flush=True)
        continue
    loop.call(controller.hand.forget_homing)
    print("ok", flush=True)
loop.stop()
controller.close()

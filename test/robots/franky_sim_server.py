"""Serves one simulated FR3 on a free loopback address, prints the address, and ends when its stdin closes."""

import contextlib
import os
import sys

import franky_sim
from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot

# Not 127.0.0.1, where a twin of somebody's running system may be.
CANDIDATES = [f"127.77.{i}.1" for i in range(1, 250)]

# A robot's controller shares its computer with nobody; this one at least goes first.
with contextlib.suppress(PermissionError):
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
with MujocoSimulator() as sim:
    robot = sim.add_robot(initial_hand_width=0.08)
    FastFrankaRobot.take_over(robot)
    with franky_sim.SimulationServer(sim, CANDIDATES) as server:
        print(robot.hostname, flush=True)
        server.run_async()
        sys.stdin.read()

"""Drives a Franka on a swing. As a program it is the owner of the process that drives it, for others to kill or freeze.

Argument: the address of the robot. It says when the arm moves, and what it finds when it goes on after a freeze.
"""

import sys
import time

import numpy as np

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.process import go_first
from bid_ros.robots.registry import build_arm

OPTIONS = {
    "twin": True,
    "gripper": False,
    "translational_stiffness": 2500.0,
    "friction_coulomb": (0.68, 0.68, 0.68, 0.68, 0.46, 0.26, 0.15),
    "state_timeout_s": 0.5,
    "silence_timeout_s": 0.2,
    "beat_timeout_s": 0.3,
}
SPEED = 0.3  # m/s


def connected(address):
    arm = build_arm("franka", FrankaConfig(address, **OPTIONS))
    arm.connect()
    arm.start()
    return arm


def swing(arm, seconds):
    """Stream set-points that swing along y, from wherever the arm is."""
    state, begin = arm.state(), time.monotonic()
    rate = 2.5
    while (t := time.monotonic() - begin) < seconds:
        way = np.array([0.0, SPEED / rate * (1 - np.cos(rate * t)), 0.0])
        velocity = np.array([0.0, SPEED * np.sin(rate * t), 0.0])
        arm.command(Setpoint(state.tool_position + way, state.tool_quaternion, velocity, np.zeros(3)))
        time.sleep(0.01)


if __name__ == "__main__":
    go_first()
    driven = connected(sys.argv[1])
    swing(driven, 0.6)
    print("moving", flush=True)
    try:
        swing(driven, 5.0)
    except ArmError as error:
        print(error, flush=True)

"""A program that owns the process that drives a UR, for others to kill.

Arguments: the address of the robot, and ``robot`` for one that is no twin and may take 4 s to answer.
"""

import sys
import time

import numpy as np

from bid_ros.control.setpoint import Setpoint
from bid_ros.robots.process import go_first
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig

go_first()
options = {"connect_timeout_s": 4.0} if sys.argv[2:] == ["robot"] else {"twin": True}
arm = build_arm("ur", UrConfig(sys.argv[1], gripper=None, silence_timeout_s=0.2, **options))
arm.connect()
arm.start()
state = arm.state()
place, velocity = state.tool_position.copy(), np.array([0.0, 0.15, 0.0])
for k in range(1000):
    place += 0.01 * velocity * min(k / 20, 1.0)
    arm.command(Setpoint(place, state.tool_quaternion, velocity * min(k / 20, 1.0), np.zeros(3)))
    if k == 50:
        print("moving", flush=True)
    time.sleep(0.01)

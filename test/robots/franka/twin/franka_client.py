"""Swings joint 1 of the arm at an address with franky, until the robot ends it; then recovers, and says what it saw."""

import math
import sys
import time

import franky
import numpy as np

robot = franky.Robot(sys.argv[1], realtime_config=franky.RealtimeConfig.Ignore)
robot.recover_from_errors()
begin, start = time.monotonic(), np.array(robot.state.q)
tracker = franky.JointImpedanceTracker(robot, stiffness=np.array([600.0] * 4 + [250.0, 150.0, 50.0]), max_delta_tau=2.5)
print("moving", flush=True)
try:
    while not robot.poll_motion():
        t = time.monotonic() - begin
        rise = min(1.0, t)
        offset, speed = 0.3 * rise * math.sin(2 * t), 0.6 * rise * math.cos(2 * t)
        one = np.eye(7)[0]
        tracker.set_target(start + offset * one, speed * one)
        time.sleep(0.005)
except franky.Exception as error:
    print(" ".join(str(error).split()), flush=True)
print(robot.recover_from_errors(), flush=True)

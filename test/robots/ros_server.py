"""Serves one simulated arm under ros2_control in a ROS domain, and prints the address that names its namespace.

Arguments: the domain, and which controller is active. It then obeys lines on its standard input: ``switch NAME``
activates a controller (none without a name), ``still`` stands for a hardware that holds the arm, ``refused`` is
answered with the number of messages that its controllers did not take.
"""

import contextlib
import os
import sys
from pathlib import Path

import rclpy
from kinematic_fingers import KinematicFingers
from rclpy.context import Context

from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf
from bid_ros.robots.ros.twin.manager import CYCLE_S, RobotUnderControl
from bid_ros.robots.ur.twin.model import HOME_Q
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.sim.loop import StepLoop

sys.path.append(str(Path(__file__).parents[1]))
from ros_robot import address_of, namespace_of

# A robot's controller shares its computer with nobody; this one at least goes first.
with contextlib.suppress(PermissionError):
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
domain, active = sys.argv[1:]
context = Context()
rclpy.init(context=context, domain_id=int(domain))
address = address_of(os.getpid())
robot = RobotUnderControl(
    NodeBus("robot", namespace_of(address), context), NAMES, arm_urdf(), KinematicPlant(HOME_Q), KinematicFingers()
)
loop = StepLoop("the robot", round(1e9 * CYCLE_S), robot.cycle, 10_000_000)
robot.start(active)
loop.start()
print(address, flush=True)
for line in sys.stdin:
    word, _, name = line.strip().partition(" ")
    if word == "switch":
        loop.call(lambda name=name: robot.switch(name))
        print("switched", flush=True)
    elif word == "still":
        loop.call(lambda: setattr(robot.servo, "step", lambda dt: None))
        print("still", flush=True)
    elif word == "refused":
        print(sum(controller.refused for controller in robot.controllers.values()), flush=True)

"""Serves one simulated arm under ros2_control in a ROS domain, and prints the address that names its namespace.

Arguments: the domain, which controller is active, and ``transforms`` for a robot that publishes its frames, whose own
lengths differ by some mm from those of its URDF. It then obeys lines on its standard input: ``switch NAME`` activates a
controller (none without a name), ``still`` stands for a hardware that holds the arm, ``tolerant PATH GOAL`` sets the
tolerances of the trajectory controller, rad, ``frameless`` ends the transforms, ``refused`` is answered with the number
of messages that its controllers did not take.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import rclpy
from kinematic_fingers import KinematicFingers
from rclpy.context import Context

from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.robots.process import go_first
from bid_ros.robots.ros.twin.description import NAMES, StatePublisher, arm_urdf
from bid_ros.robots.ros.twin.manager import CYCLE_S, RobotUnderControl
from bid_ros.robots.ros.twin.trajectory_controller import Tolerances, TrajectoryController
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.model import HOME_Q
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.sim.loop import StepLoop

sys.path.append(str(Path(__file__).parents[1]))
from ros_robot import address_of, namespace_of

# A robot's controller shares its computer with nobody; this one at least goes first.
go_first()
domain, active, *frames = sys.argv[1:]
context = Context()
rclpy.init(context=context, domain_id=int(domain))
address = address_of(os.getpid())
bus = NodeBus("robot", namespace_of(address), context)
own = replace(UR5E, d1=UR5E.d1 + 0.003, a2=UR5E.a2 - 0.004, d4=UR5E.d4 + 0.002)
publisher = StatePublisher(bus, arm_urdf(own), "tf", "tf_static") if frames else None
plant, fingers = KinematicPlant(HOME_Q), KinematicFingers()
robot = RobotUnderControl(bus, plant, fingers, frames=publisher)
loop = StepLoop("the robot", round(1e9 * CYCLE_S), robot.cycle)
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
    elif word == "tolerant":
        path, goal = map(float, name.split())
        own = Tolerances.alike(len(NAMES), path, goal, 0.5)
        loop.call(lambda own=own: setattr(robot.controllers[TrajectoryController.name], "_own", own))
        print("tolerant", flush=True)
    elif word == "frameless":
        loop.call(lambda: setattr(publisher, "publish", lambda now_ns, joints: None))
        print("frameless", flush=True)
    elif word == "refused":
        print(sum(controller.refused for controller in robot.controllers.values()), flush=True)

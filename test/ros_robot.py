"""A client of the simulated arm of ``ros_server.py``: a robot that is driven through ROS, in a namespace of its own."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.context import Context
from ros_domain import own_domain

from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.robots.base import Arm, Dynamics
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ros.config import RosConfig, RosGripperConfig
from bid_ros.robots.ros.twin.cartesian import ImpedanceController, TwistServo
from bid_ros.robots.ros.twin.controllers import ForwardController
from bid_ros.robots.ros.twin.description import NAMES
from bid_ros.robots.ros.twin.manager import JOINT_STATES
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController

TRAJECTORIES, POSITIONS = TrajectoryController.name, ForwardController.name
POSES = ImpedanceController.name

GRIPPER = RosGripperConfig(
    name="gripper_controller/gripper_cmd",
    joint="robotiq_85_left_knuckle_joint",
    open_position=0.0,
    closed_position=0.8,
    open_width=0.085,
    fingers=("left", "right"),
)
NOWHERE = "127.77.250."  # no robot is at an address that begins so
_CONTEXTS: list[Context] = []
_NODES: list[Any] = []
_NUMBERS = itertools.count(1)


def address_of(pid: int) -> str:
    """Return a name of a robot that a process serves."""
    return f"127.79.{pid >> 8 & 255}.{pid & 255}"


def namespace_of(address: str) -> str:
    """Return the namespace of the topics of the robot at an address."""
    return "/at_" + address.replace(".", "_")


def context() -> Context:
    """Return this process's context, in the domain of its tests.

    A node stays in it, as in the arm node's process: without any, the middleware finds all others anew each time.
    """
    if not _CONTEXTS:
        _CONTEXTS.append(Context())
        rclpy.init(context=_CONTEXTS[0], domain_id=own_domain())
        _NODES.append(rclpy.create_node("keeper", context=_CONTEXTS[0]))
    return _CONTEXTS[0]


def bus_at(address: str) -> NodeBus:
    """Return a bus in the namespace of a robot."""
    return NodeBus(f"client_{next(_NUMBERS)}", namespace_of(address), context())


def ros_arm(address: str, **parts: Any) -> Arm:
    """Return the driver of the robot at an address, not connected."""
    given = {
        "joint_names": NAMES,
        # On a busy computer nodes find each other late.
        "connect_timeout_s": 1.0 if address.startswith(NOWHERE) else 12.0,
        "gripper": GRIPPER,
        "dynamics": Dynamics(0.5, 0.3, 1.0),
        **parts,
    }
    return build_arm("ros", RosConfig(address, twin=True, **given), bus_at(address))


def forward_arm(address: str, **parts: Any) -> Arm:
    """Return the same, driven with positions."""
    topic = f"{POSITIONS}/commands"
    return ros_arm(address, command="forward_position", command_topic=topic, controller=POSITIONS, **parts)


def pose_arm(address: str, **parts: Any) -> Arm:
    """Return the same, driven with poses of its tool."""
    return ros_arm(address, command="pose", command_topic=ImpedanceController.topic, controller=POSES, **parts)


def twist_arm(address: str, **parts: Any) -> Arm:
    """Return the same, driven with twists of its tool."""
    given = {"command": "twist", "command_topic": TwistServo.topic, "twist_lag_s": 0.088, **parts}
    return ros_arm(address, **given)


def transform_arm(address: str, **parts: Any) -> Arm:
    """Return the arm of trajectories again: its transforms say where its tool is, and its joint motions are goals."""
    return ros_arm(address, **{"tool_pose": "tf", "tf": "tf", "tf_static": "tf_static", "motion": "action", **parts})


@contextmanager
def mute_ros(address: str, ports: Sequence[int]) -> Iterator[None]:
    """A robot whose joint states have a publisher that never publishes."""
    bus = bus_at(address)
    bus.offer(JOINT_STATES)
    yield
    bus.close()

"""The URDF of the twin's arm, a UR5e by its Denavit-Hartenberg table, without meshes; and the transforms of its links.

Sources: Universal Robots, "DH parameters for calculations of kinematics and dynamics"; UR5e user manual (limits);
robot_state_publisher, ``src/robot_state_publisher.cpp`` (github.com/ros/robot_state_publisher). What is kept of it:
a message has the transform of every joint that moves, with the stamp of the joint states; fixed joints are published
once, latched; joint states that come sooner than ``publish_frequency`` allows are left out.
"""

import math
import xml.etree.ElementTree as ET
from typing import Any, Final

import pinocchio

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array
from bid_ros.robots.bus import Bus, Channel, Values, stamp
from bid_ros.robots.ros.urdf import read_chain
from bid_ros.robots.ur.config import JOINT_NAMES
from bid_ros.robots.ur.kinematics import UR5E, Kinematics

NAMES: Final = tuple(f"{name}_joint" for name in JOINT_NAMES)
BASE, TOOL = "base_link", "tool0"
LINKS: Final = ("shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link")
SPEED: Final = math.pi  # rad/s
RANGE: Final = 2 * math.pi  # rad either way
FREQUENCY_HZ: Final = 200.0  # publish_frequency: more than there are joint states; 20 if nobody sets it
TYPE: Final = "tf2_msgs/msg/TFMessage"


def arm_urdf(kinematics: Kinematics = UR5E) -> str:
    """Return the URDF of an arm of UR's shape, from ``base_link`` to the flange ``tool0``."""
    robot = ET.Element("robot", name="arm")
    for link in (BASE, *LINKS, TOOL):
        ET.SubElement(robot, "link", name=link)
    length, height, turn = 0.0, 0.0, 0.0  # of the table's row before a joint
    parent = BASE
    for name, link, (a, d, alpha) in zip(NAMES, LINKS, kinematics.table, strict=True):
        joint = _joint(robot, name, "revolute", parent, link, (length, height, turn))
        ET.SubElement(joint, "axis", xyz="0 0 1")
        limits = {"lower": str(-RANGE), "upper": str(RANGE), "velocity": str(SPEED), "effort": "150"}
        ET.SubElement(joint, "limit", limits)
        parent, (length, height, turn) = link, (a, d, alpha)
    _joint(robot, "flange", "fixed", parent, TOOL, (length, height, turn))
    return ET.tostring(robot, encoding="unicode")


def _joint(
    robot: ET.Element, name: str, kind: str, parent: str, child: str, place: tuple[float, float, float]
) -> ET.Element:
    """Add a joint at a place: m along x and z of the parent, and a turn about x, rad."""
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    length, height, turn = place
    ET.SubElement(joint, "origin", xyz=f"{length} 0 {height}", rpy=f"{turn} 0 0")
    return joint


class StatePublisher:
    """Publishes the frames of the twin's arm. One thread only.

    Args:
        bus: of the robot.
        urdf: of the arm, in the shape of :func:`bid_ros.robots.ros.twin.description.arm_urdf`.
        moving, static: names of the topics.
    """

    def __init__(self, bus: Bus, urdf: str, moving: str, static: str) -> None:
        self._bus, self._moving = bus, Channel(moving, TYPE, depth=100)
        self._static = Channel(static, TYPE, latched=True)
        self._model: Any = read_chain(urdf, BASE, TOOL, "the twin's URDF").model
        self._data: Any = self._model.createData()
        self._told_ns = 0

    def start(self) -> None:
        """Open the topics, and publish the fixed joint. Raises ArmError if the message type is not there."""
        self._bus.offer(self._moving)
        self._bus.offer(self._static)
        flange = self._model.frames[self._model.nframes - 1].placement
        self._bus.publish(self._static.name, {"transforms": [_transform(0, LINKS[-1], TOOL, flange)]})

    def publish(self, now_ns: int, joints: Array) -> None:
        """Publish where the links are, unless it was just done.

        Args:
            now_ns: stamp of the joint states, ns.
            joints: ``(n,)`` rad, base to tool.
        """
        if now_ns - self._told_ns < NANOSECONDS / FREQUENCY_HZ:
            return
        self._told_ns = now_ns
        pinocchio.forwardKinematics(self._model, self._data, joints)
        places = self._data.liMi.tolist()[1:]  # each joint's frame in that of the joint before
        rows = zip((BASE, *LINKS), LINKS, places, strict=False)
        self._bus.publish(self._moving.name, {"transforms": [_transform(now_ns, *row) for row in rows]})


def _transform(at_ns: int, parent: str, child: str, place: Any) -> Values:
    """Return a message's transform for a ``pinocchio.SE3``."""
    x, y, z, *turn = pinocchio.SE3ToXYZQUATtuple(place)
    return {
        "header": {"stamp": stamp(at_ns), "frame_id": parent},
        "child_frame_id": child,
        "transform": {"translation": {"x": x, "y": y, "z": z}, "rotation": dict(zip("xyzw", turn, strict=True))},
    }

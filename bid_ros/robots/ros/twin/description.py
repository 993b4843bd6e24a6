"""The URDF of the twin's arm: a UR5e by its Denavit-Hartenberg table, without meshes.

Source: Universal Robots, "DH parameters for calculations of kinematics and dynamics"; UR5e user manual (limits).
"""

import math
import xml.etree.ElementTree as ET
from typing import Final

from bid_ros.robots.ur.config import JOINT_NAMES
from bid_ros.robots.ur.kinematics import UR5E, Kinematics

NAMES: Final = tuple(f"{name}_joint" for name in JOINT_NAMES)
BASE, TOOL = "base_link", "tool0"
LINKS: Final = ("shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link")
SPEED: Final = math.pi  # rad/s
RANGE: Final = 2 * math.pi  # rad either way


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

"""The chain of joints between two links of a URDF, without meshes, inertias and everything beside the chain.

Pinocchio reads the chain alone. Of a whole URDF it wants more than robots come with: it refuses one whose gripper has a
joint without limits, and takes 0 for a limit that is not there. It says why on stderr only.

Source: ROS, "URDF XML specification" (wiki.ros.org/urdf/XML): elements ``joint``, ``limit`` and ``origin``.
"""

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pinocchio

from bid_ros.control.chain import Chain, JointFrame
from bid_ros.control.link_shapes import LinkShape, turned_to
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array

TURNS: Final = ("revolute", "continuous")
FREE: Final = 1e4  # rad: limit of a joint that turns on and on, for a library that wants one


@dataclass(frozen=True)
class UrdfChain:
    """Movable joints from base to tool.

    Attributes:
        joint_names: of the joints that turn.
        lower, upper: limits, rad; infinite for a joint that turns on and on.
        speed: largest speed, rad/s; NaN where the URDF names none.
        model: Pinocchio's model of the chain alone. Its last frame is the tool link.
        text: the URDF of the chain alone, with the collision shapes of its links.
    """

    joint_names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    speed: tuple[float, ...]
    model: Any
    text: str


def is_file(urdf: str) -> bool:
    """Return whether a setting names the file of a URDF, not its topic."""
    return urdf.endswith(".urdf")


def read_chain_file(name: str, base_link: str, tool_link: str, address: str) -> UrdfChain:
    """Return the chain of a file. Raises ArmError as :func:`read_chain`, or if it does not exist.

    Args:
        name: path of the file.
        base_link, tool_link: as for :func:`read_chain`.
        address: of the robot, for an error.
    """
    path = Path(name)
    if not path.is_file():
        raise ArmError(f"robot at {address}: URDF {path} does not exist; valid is a file or a topic")
    return read_chain(path.read_text(), base_link, tool_link, f"URDF {path}")


def read_chain(text: str, base_link: str, tool_link: str, where: str) -> UrdfChain:
    """Return the chain between two links.

    Args:
        text: a URDF, not xacro.
        base_link, tool_link: names of its links; the base is above the tool.
        where: what the URDF is, for example its topic. It begins an error.

    Raises:
        ArmError: the text is no URDF, a link does not exist, the tool is not below the base, or a joint slides.
    """
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ArmError(f"{where} is not XML: {error}; valid is a URDF, not a xacro file") from error
    if root.tag != "robot":
        raise ArmError(f"{where} begins with <{root.tag}>; valid is a URDF, which begins with <robot>")
    joints = _path(root, base_link, tool_link, where)
    moving = [joint for joint in joints if joint.get("type") != "fixed"]
    for joint in moving:
        if joint.get("type") not in TURNS:
            kind = f"joint '{joint.get('name')}' of {where} is of type {joint.get('type')}"
            raise ArmError(f"{kind}; valid between {base_link} and {tool_link} are {' and '.join(TURNS)}")
    if not moving:
        raise ArmError(f"{where} has no joint that turns between {base_link} and {tool_link}; valid is an arm's chain")
    limits = [_limits(joint, where) for joint in moving]
    for joint in joints:
        _check(joint, where)
    try:
        written = _written(root, joints, base_link)
        model = pinocchio.buildModelFromXML(written)
    except ValueError as error:  # the cause is on stderr
        what = f"{where} names a joint or link between {base_link} and {tool_link} twice"
        raise ArmError(f"{what}; valid is a name for each") from error
    names = tuple(joint.get("name", "") for joint in moving)
    lower, upper, speed = zip(*limits, strict=True)
    return UrdfChain(names, lower, upper, speed, model, written)


def _check(joint: ET.Element, where: str) -> None:
    """Raise ArmError unless a joint's origin and axis are numbers: Pinocchio says on stderr that they are not."""
    for tag, field in (("origin", "xyz"), ("origin", "rpy"), ("axis", "xyz")):
        found, what = joint.find(tag), f"{tag} of joint '{joint.get('name')}' of {where}"
        if found is None or field not in found.attrib:
            continue
        values = _numbers(found.attrib[field])
        if len(values) != 3 or not np.isfinite(values).all():
            raise ArmError(f"{what} is '{found.attrib[field]}'; valid are three numbers")
        if tag == "axis" and np.linalg.norm(values) < 1e-6:
            raise ArmError(f"{what} is 0 0 0; valid is a direction")


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []


def _path(root: ET.Element, base_link: str, tool_link: str, where: str) -> list[ET.Element]:
    """Return the joints from base to tool."""
    links = [link.get("name", "") for link in root.findall("link")]
    for name in (base_link, tool_link):
        if name not in links:
            raise ArmError(f"{where} has no link '{name}'; valid are {', '.join(links)}")
    above = {_end(joint, "child"): joint for joint in root.findall("joint")}
    joints: list[ET.Element] = []
    link = tool_link
    while link != base_link:
        if link not in above or len(joints) > len(above):
            raise ArmError(
                f"link '{tool_link}' of {where} is not below '{base_link}'; valid is a link that the arm moves"
            )
        joints.append(above[link])
        link = _end(above[link], "parent")
    return joints[::-1]


def _end(joint: ET.Element, tag: str) -> str:
    found = joint.find(tag)
    return "" if found is None else found.get("link", "")


def _limits(joint: ET.Element, where: str) -> tuple[float, float, float]:
    """Return lower, upper and speed limit of a joint."""
    found, name = joint.find("limit"), joint.get("name")
    values = {} if found is None else found.attrib
    try:
        speed = float(values.get("velocity", "nan"))
        if joint.get("type") == "continuous":
            return -math.inf, math.inf, speed
        lower, upper = float(values.get("lower", "nan")), float(values.get("upper", "nan"))
    except ValueError as error:
        raise ArmError(f"limits of joint '{name}' of {where} are no numbers: {error}") from error
    return lower, upper, speed


def _written(root: ET.Element, joints: list[ET.Element], base_link: str) -> str:
    robot = ET.Element("robot", name="chain")
    shapes = {link.get("name", ""): link.findall("collision") for link in root.findall("link")}
    ET.SubElement(robot, "link", name=base_link).extend(shapes.get(base_link, []))
    for joint in joints:
        turns = joint.get("type") in TURNS
        own = ET.SubElement(robot, "joint", name=joint.get("name", ""), type="revolute" if turns else "fixed")
        for tag in ("parent", "child", "origin", "axis"):
            found = joint.find(tag)
            if found is not None:
                ET.SubElement(own, tag, found.attrib)
        if turns:
            ET.SubElement(own, "limit", lower=str(-FREE), upper=str(FREE), effort="1", velocity="1")
        child = _end(joint, "child")
        ET.SubElement(robot, "link", name=child).extend(shapes.get(child, []))
    return ET.tostring(robot, encoding="unicode")


def serial_chain(chain: UrdfChain) -> Chain:
    """Return the chain as frames between joints that turn about z."""
    model, frames, before = chain.model, [], np.eye(3)
    for place, align in zip(model.jointPlacements.tolist()[1:], _alignments(model), strict=True):
        frames.append(JointFrame(before.T @ place.translation, before.T @ place.rotation @ align))
        before = align
    end = model.frames[model.nframes - 1].placement
    frames.append(JointFrame(before.T @ end.translation, before.T @ end.rotation))
    return Chain(tuple(frames))


def link_shapes(chain: UrdfChain) -> tuple[LinkShape, ...]:
    """Return the collision shapes of a chain's links, in the frames of :func:`serial_chain`. Of a mesh its convex hull.

    Raises:
        ArmError: a mesh cannot be read.
    """
    try:
        kind = pinocchio.GeometryType.COLLISION
        found: Any = pinocchio.buildGeomFromUrdfString(chain.model, chain.text, kind)
    except (ValueError, RuntimeError) as error:
        what = str(error).partition("message: ")[2] or str(error)
        raise ArmError(f"a collision shape of the URDF: {what.splitlines()[0]}; valid is a file to be read") from error
    turns = [np.eye(3), *_alignments(chain.model)]
    return tuple(_shape(shape, turns[shape.parentJoint]) for shape in found.geometryObjects)


def has_shapes(chain: UrdfChain) -> bool:
    """Return whether the links of a chain have collision shapes."""
    return ET.fromstring(chain.text).find("link/collision") is not None


def _shape(shape: Any, turn: Array) -> LinkShape:
    geometry, place = shape.geometry, shape.placement
    if hasattr(geometry, "buildConvexRepresentation"):
        geometry.buildConvexRepresentation(True)
        geometry = geometry.convex
    return LinkShape(shape.name, shape.parentJoint, geometry, turn.T @ place.translation, turn.T @ place.rotation)


def _alignments(model: Any) -> list[Array]:
    """Return for each joint the rotation ``(3, 3)`` that turns z into its axis."""
    data = model.createData()
    pinocchio.forwardKinematics(model, data, np.zeros(model.nq))  # only then data has the axes
    return [turned_to(joint.S.reshape(6)[3:]) for joint in data.joints.tolist()[1:]]

"""MuJoCo scene of dynamic placing on top of franky-sim's Franka: table, cup, object, two cameras, plain visuals.

franky-sim's link meshes take most of the time of a rendered frame and of a step, so they are replaced by a few
boxes and capsules. Masses and inertias are untouched: the model states them per body, not per geom.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import mujoco
from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.sim.geometry import (
    CUP_BOTTOM_RADIUS,
    CUP_HEIGHT,
    CUP_RIM_RADIUS,
    CUP_SIDES,
    CUP_WALL,
    CUP_X,
    CUP_Y,
    HOME_Q,
    OBJECT_LENGTH,
    OBJECT_MASS,
    OBJECT_RADIUS,
)
from bid_ros.sim.mjcf import geom, lamp, look, plain_visuals, text

CAMERAS: Final = ("third_person", "wrist")
ROBOT: Final = "robot0_"
OPEN_WIDTH: Final = 0.08  # m

# Contact bits: what is not listed (the arm's links) touches nothing.
_HAND_BITS: Final = {"contype": "1", "conaffinity": "6"}
_OBJECT_BITS: Final = {"contype": "2", "conaffinity": "5"}
_WORLD_BITS: Final = {"contype": "4", "conaffinity": "3"}
_NO_BITS: Final = {"contype": "0", "conaffinity": "0"}

# Rubber on a firm cylinder. The default contact is so soft for these small masses that 40 N press 3 mm into it.
_GRIP: Final = {"friction": "1.5 0.01 0.0001", "condim": "4", "solref": "0.003 1", "solimp": "0.95 0.99 0.0005"}

_WHITE: Final = "0.85 0.86 0.88 1"
_DARK: Final = "0.25 0.26 0.28 1"
_TABLE: Final = "0.55 0.50 0.44 1"
_CUP: Final = "0.20 0.45 0.95 1"
_CUP_FLOOR: Final = "0.06 0.14 0.35 1"
_OBJECT: Final = "1.0 0.45 0.05 1"

# Capsules per link: from, to (m, link frame), radius.
_LINKS: Final = (
    ("fr3_link0", "0 0 0.06  0 0 0.18", 0.075),
    ("fr3_link1", "0 0 -0.14  0 0 0", 0.07),
    ("fr3_link2", "0 0 0  0 -0.19 0", 0.065),
    ("fr3_link3", "0 0 -0.12  0.0825 0 0", 0.06),
    ("fr3_link4", "0 0 0  -0.0825 0.11 0", 0.058),
    ("fr3_link5", "0 0 -0.26  0 0 0", 0.052),
    ("fr3_link6", "0 0 0  0.088 0 0", 0.05),
    ("fr3_link7", "0 0 0  0 0 0.075", 0.042),
)


@dataclass(frozen=True)
class SceneAddresses:
    """Where the scene's parts lie in the arrays of a compiled model.

    Attributes:
        object_qpos, object_qvel: first index of the object's pose (7 values, quaternion wxyz) and velocity (6).
        fingers_qpos, fingers_qvel: indices of the two finger joints; their sum is the opening width in m.
        cup: row in ``mocap_pos`` and ``mocap_quat``.
        hand: body index; the tool's frame lies ``TOOL_FROM_HAND`` along its z axis.
    """

    object_qpos: int
    object_qvel: int
    fingers_qpos: tuple[int, int]
    fingers_qvel: tuple[int, int]
    cup: int
    hand: int

    @classmethod
    def of(cls, model: mujoco.MjModel) -> SceneAddresses:
        """Look the parts up by name in a model of this scene."""
        free = model.joint("object_joint")
        fingers = [model.joint(f"{ROBOT}finger_joint{i}") for i in (1, 2)]
        return cls(
            object_qpos=int(free.qposadr[0]),
            object_qvel=int(free.dofadr[0]),
            fingers_qpos=(int(fingers[0].qposadr[0]), int(fingers[1].qposadr[0])),
            fingers_qvel=(int(fingers[0].dofadr[0]), int(fingers[1].dofadr[0])),
            cup=int(model.body("cup").mocapid[0]),
            hand=int(model.body(f"{ROBOT}hand").id),
        )


TOOL_FROM_HAND: Final = 0.1034  # m along the hand's z axis, as franky-sim's end-effector frame


def build_simulator(initial_q: Sequence[float] = HOME_Q) -> MujocoSimulator:
    """Return franky-sim's simulator, not started, with the placing scene in it and the gripper open.

    Args:
        initial_q: the arm's seven joint angles at the start, rad.
    """
    simulator = MujocoSimulator()
    for child in list(simulator.worldbody):
        simulator.worldbody.remove(child)  # the checkered floor and its three lights
    simulator.add_robot(initial_q=initial_q, initial_hand_width=OPEN_WIDTH)
    _plain_scene(simulator.scene)
    _plain_robot(simulator.worldbody)
    _add_table(simulator.worldbody)
    _add_cup(simulator.worldbody)
    _add_object(simulator.worldbody)
    _add_cameras(simulator.worldbody)
    return simulator


def render_model() -> mujoco.MjModel:
    """Compile the scene by itself: the same ``qpos`` and mocap layout as the twin's model, for another process."""
    return mujoco.MjModel.from_xml_string(ET.tostring(build_simulator().scene, encoding="unicode"))


def _plain_scene(scene: ET.Element) -> None:
    asset = scene.find("asset")
    assert asset is not None
    for child in list(asset):
        asset.remove(child)
    option = scene.find("option")
    assert option is not None
    # An elliptic cone with a high ratio of friction to normal stiffness keeps a held object from creeping.
    option.attrib.update(cone="elliptic", impratio="20")
    visual = scene.find("visual")
    assert visual is not None
    scene.remove(visual)
    plain_visuals(scene, (0.5, 0.0, 0.2))


def _plain_robot(worldbody: ET.Element) -> None:
    for body in worldbody.iter("body"):
        for mesh in body.findall("geom"):
            body.remove(mesh)
    for name, ends, radius in _LINKS:
        geom(_body(worldbody, name), "capsule", size=str(radius), fromto=ends, rgba=_WHITE, **_NO_BITS)
    hand = _body(worldbody, "hand")
    geom(hand, "box", size="0.03 0.10 0.033", pos="0 0 0.033", rgba=_WHITE, **_HAND_BITS)
    for side in ("left_finger", "right_finger"):
        finger = _body(worldbody, side)
        geom(finger, "box", size="0.0105 0.0065 0.019", pos="0 0.0145 0.018", rgba=_DARK, **_HAND_BITS)
        # A flat pad, 21 x 18 mm, in place of franky-sim's five boxes: four firm contacts on a cylinder.
        geom(finger, "box", size="0.0105 0.005 0.009", pos="0 0.005 0.045", rgba=_DARK, **_GRIP, **_HAND_BITS)


def _add_table(worldbody: ET.Element) -> None:
    lamp(worldbody, (1.0, -0.6, 2.0), (-0.4, 0.35, -1.0))
    geom(worldbody, "box", name="table", size="0.6 0.6 0.02", pos="0.4 0 -0.02", rgba=_TABLE, **_WORLD_BITS)


def _add_cup(worldbody: ET.Element) -> None:
    """Cup of thin walls that a mocap pose moves; its inner faces lie on a cone from bottom to rim radius."""
    middle = (sum(CUP_X) / 2, sum(CUP_Y) / 2)
    cup = ET.SubElement(worldbody, "body", name="cup", mocap="true", pos=f"{middle[0]} {middle[1]} 0")
    # The cup's own friction, paper on wood, holds whatever it touches: priority overrides the object's.
    paper = {"friction": "0.3 0.005 0.0001", "priority": "1", **_WORLD_BITS}
    floor = f"{CUP_BOTTOM_RADIUS + CUP_WALL} {CUP_WALL / 2}"
    geom(cup, "cylinder", size=floor, pos=f"0 0 {CUP_WALL / 2}", rgba=_CUP_FLOOR, **paper)
    lean = math.atan2(CUP_RIM_RADIUS - CUP_BOTTOM_RADIUS, CUP_HEIGHT)
    radius = (CUP_BOTTOM_RADIUS + CUP_RIM_RADIUS) / 2 + CUP_WALL / 2 / math.cos(lean)
    half_width = (CUP_RIM_RADIUS + CUP_WALL) * math.tan(math.pi / CUP_SIDES)
    half_height = CUP_HEIGHT / 2 / math.cos(lean)
    for side in range(CUP_SIDES):
        turn = 2 * math.pi * side / CUP_SIDES
        x, y = radius * math.cos(turn), radius * math.sin(turn)
        size = f"{CUP_WALL / 2} {half_width} {half_height}"
        place = f"{x} {y} {CUP_HEIGHT / 2}"
        geom(cup, "box", size=size, pos=place, quat=_quaternion_z_then_y(turn, lean), rgba=_CUP, **paper)


def _quaternion_z_then_y(turn: float, lean: float) -> str:
    """Quaternion wxyz of a turn about z followed by a lean about the turned y axis, rad."""
    cz, sz, cy, sy = math.cos(turn / 2), math.sin(turn / 2), math.cos(lean / 2), math.sin(lean / 2)
    return f"{cz * cy} {-sz * sy} {cz * sy} {sz * cy}"


def _add_object(worldbody: ET.Element) -> None:
    body = ET.SubElement(worldbody, "body", name="object", pos=f"0.25 -0.4 {OBJECT_LENGTH / 2}")
    ET.SubElement(body, "freejoint", name="object_joint")
    size = f"{OBJECT_RADIUS} {OBJECT_LENGTH / 2}"
    geom(body, "cylinder", name="object", size=size, mass=str(OBJECT_MASS), rgba=_OBJECT, **_GRIP, **_OBJECT_BITS)


def _add_cameras(worldbody: ET.Element) -> None:
    third_person, wrist = CAMERAS
    # As near as the cup's range and the held object's lower end at every start allow.
    eye = (1.26, 0.37, 0.67)
    axes = look(eye, (0.56, 0.03, 0.18))
    ET.SubElement(worldbody, "camera", name=third_person, mode="fixed", fovy="27", pos=text(eye), xyaxes=axes)
    # Beside the fingers, where wrist cameras are mounted; the palm stays just out of the picture.
    eye = (0.09, 0.0, 0.055)
    axes = look(eye, (0.03, 0.0, 0.20), up=(1.0, 0.0, 0.0))
    hand = _body(worldbody, "hand")
    ET.SubElement(hand, "camera", name=wrist, mode="fixed", fovy="75", pos=text(eye), xyaxes=axes)


def _body(worldbody: ET.Element, name: str) -> ET.Element:
    body = worldbody.find(f".//body[@name='{ROBOT}{name}']")
    assert body is not None, name
    return body

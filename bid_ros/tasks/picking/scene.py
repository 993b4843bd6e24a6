"""MuJoCo scene of dynamic picking around a UR5e with a two-finger gripper: table, cup, saucer and two cameras."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

import mujoco

from bid_ros.robots.robotiq.model import FINGERS, GRIP, PADS, TOOL_FROM_FLANGE
from bid_ros.sim.mjcf import NO_BITS, OBJECT_BITS, WORLD_BITS, geom, look, text
from bid_ros.tasks.picking.geometry import (
    CUP_HEIGHT,
    CUP_MASS,
    CUP_RADIUS,
    CUP_X,
    CUP_Y,
    SAUCER_HEIGHT,
    SAUCER_RADIUS,
    SAUCER_WELL,
    SAUCER_X,
    SAUCER_Y,
)

CAMERAS: Final = ("third_person", "wrist")

# Earthenware on wood: its priority overrides the friction of the cup's sides, which is the pads' business.
_WOOD: Final = {"friction": "0.35 0.005 0.0001", "priority": "1", "solref": "0.005 1", **WORLD_BITS}

_TABLE: Final = "0.55 0.50 0.44 1"
_CUP: Final = "0.90 0.28 0.10 1"
_CUP_INSIDE: Final = "0.35 0.08 0.03 1"
_SAUCER: Final = "0.85 0.90 0.96 1"
_SAUCER_WELL: Final = "0.20 0.45 0.85 1"
_PAD: Final = "0.15 0.75 0.45 1"


@dataclass(frozen=True)
class PickingAddresses:
    """Where the scene's parts lie in the arrays of a compiled model.

    Attributes:
        cup: body index; cup_qpos, cup_qvel: first index of its pose (7 values, quaternion wxyz) and velocity (6).
        fingers_qpos: indices of the two finger joints; their sum is the opening in m.
        pads: geom indices of the two pads; cup_geom: of the cup's solid.
        saucer: row in ``mocap_pos`` and ``mocap_quat``.
        gripper: body index; the tool's frame lies ``TOOL_FROM_FLANGE`` along its z axis.
    """

    cup: int
    cup_qpos: int
    cup_qvel: int
    fingers_qpos: tuple[int, int]
    pads: tuple[int, int]
    cup_geom: int
    saucer: int
    gripper: int

    @classmethod
    def of(cls, model: mujoco.MjModel) -> PickingAddresses:
        """Look the parts up by name in a model of this scene."""
        free = model.joint("cup_joint")
        left, right = (int(model.joint(f"{finger}_joint").qposadr[0]) for finger in FINGERS)
        first, second = (int(model.geom(pad).id) for pad in PADS)
        return cls(
            cup=int(model.body("cup").id),
            cup_qpos=int(free.qposadr[0]),
            cup_qvel=int(free.dofadr[0]),
            fingers_qpos=(left, right),
            pads=(first, second),
            cup_geom=int(model.geom("cup").id),
            saucer=int(model.body("saucer").mocapid[0]),
            gripper=int(model.body("gripper").id),
        )


def furnish(scene: ET.Element, hand: ET.Element) -> None:
    """Add table, saucer, cup and cameras, as :meth:`bid_ros.sim.twin.TwinScene.furnish` says."""
    worldbody = scene.find("worldbody")
    assert worldbody is not None
    _colour_pads(hand)
    _add_table(worldbody)
    _add_saucer(worldbody)
    _add_cup(worldbody)
    _add_cameras(worldbody, hand)


def _colour_pads(gripper: ET.Element) -> None:
    """Make the pads stand out from the fingers: where they are is what a picture has to tell."""
    for pad in gripper.iter("geom"):
        if pad.get("name") in PADS:
            pad.set("rgba", _PAD)


def _add_table(worldbody: ET.Element) -> None:
    # A plane under the cup, because a cylinder stands on it on four points at any time.
    geom(worldbody, "plane", name="table", size="1.5 1.5 0.02", rgba=_TABLE, **_WOOD)


def _add_saucer(worldbody: ET.Element) -> None:
    """Flat saucer that a mocap pose places; its tinted middle is where the cup belongs."""
    middle = (sum(SAUCER_X) / 2, sum(SAUCER_Y) / 2, 0.0)
    saucer = ET.SubElement(worldbody, "body", name="saucer", mocap="true", pos=text(middle))
    half = SAUCER_HEIGHT / 2
    geom(saucer, "cylinder", size=f"{SAUCER_RADIUS} {half}", pos=f"0 0 {half}", rgba=_SAUCER, **_WOOD)
    well = {"size": f"{SAUCER_WELL} 0.0005", "pos": f"0 0 {SAUCER_HEIGHT}"}
    geom(saucer, "cylinder", rgba=_SAUCER_WELL, **well, **NO_BITS)


def _add_cup(worldbody: ET.Element) -> None:
    """Upright cup whose frame is the middle of its foot; solid to the fingers, with a dark opening to the cameras."""
    cup = ET.SubElement(worldbody, "body", name="cup", pos=text((sum(CUP_X) / 2, sum(CUP_Y) / 2, 0.0)))
    ET.SubElement(cup, "freejoint", name="cup_joint")
    half = CUP_HEIGHT / 2
    size = {"size": f"{CUP_RADIUS} {half}", "pos": f"0 0 {half}", "mass": str(CUP_MASS)}
    geom(cup, "cylinder", name="cup", rgba=_CUP, **size, **GRIP, **OBJECT_BITS)
    opening = {"size": f"{CUP_RADIUS - 0.004} 0.0005", "pos": f"0 0 {CUP_HEIGHT}", "mass": "0"}
    geom(cup, "cylinder", rgba=_CUP_INSIDE, **opening, **NO_BITS)


def _add_cameras(worldbody: ET.Element, gripper: ET.Element) -> None:
    third_person, wrist = CAMERAS
    # In front of the robot, beside the table: the gripper does not hide the cup from there.
    eye = (1.25, -0.38, 0.72)
    axes = look(eye, (0.50, 0.02, 0.11))
    ET.SubElement(worldbody, "camera", name=third_person, mode="fixed", fovy="31", pos=text(eye), xyaxes=axes)
    # On the wrist, looking past the fingers with a wide angle, as the camera of a UMI gripper (Chi et al., RSS 2024).
    eye = (0.090, 0.0, 0.075)
    axes = look(eye, (0.02, 0.0, TOOL_FROM_FLANGE + 0.03), up=(1.0, 0.0, 0.0))
    ET.SubElement(gripper, "camera", name=wrist, mode="fixed", fovy="92", pos=text(eye), xyaxes=axes)

"""MuJoCo scene of dynamic picking around a UR5e with a two-finger gripper: table, cup, saucer and two cameras."""

import xml.etree.ElementTree as ET
from typing import Final

from bid_ros.robots.robotiq.model import GRIP, PADS, TOOL_FROM_FLANGE
from bid_ros.sim.mjcf import NO_BITS, OBJECT_BITS, WORLD_BITS, geom, part, text
from bid_ros.tasks.picking import geometry
from bid_ros.tasks.world import WRIST_UP, add_camera

CAMERAS: Final = ("third_person", "wrist")

# Earthenware on wood: its priority overrides the friction of the cup's sides, which is the pads' business.
_WOOD: Final = {"friction": "0.35 0.005 0.0001", "priority": "1", "solref": "0.005 1", **WORLD_BITS}

_TABLE: Final = "0.55 0.50 0.44 1"
_CUP: Final = "0.90 0.28 0.10 1"
_CUP_INSIDE: Final = "0.35 0.08 0.03 1"
_SAUCER: Final = "0.85 0.90 0.96 1"
_SAUCER_WELL: Final = "0.20 0.45 0.85 1"
_PAD: Final = "0.15 0.75 0.45 1"


def furnish(scene: ET.Element, hand: ET.Element) -> None:
    """Add table, saucer, cup and cameras, as :meth:`bid_ros.sim.twin.TwinScene.furnish` says."""
    worldbody = part(scene, "worldbody")
    # The pads stand out from the fingers: where they are is what a picture has to tell.
    for pad in hand.iter("geom"):
        if pad.get("name") in PADS:
            pad.set("rgba", _PAD)
    # A plane under the cup, because a cylinder stands on it on four points at any time.
    geom(worldbody, "plane", name="table", size="1.5 1.5 0.02", rgba=_TABLE, **_WOOD)
    _add_saucer(worldbody)
    _add_cup(worldbody)
    # In front of the robot, beside the table: the gripper does not hide the cup from there.
    add_camera(worldbody, CAMERAS[0], 31, (1.25, -0.38, 0.72), (0.50, 0.02, 0.11))
    # On the wrist, looking past the fingers with a wide angle, as the camera of a UMI gripper (Chi et al., RSS 2024).
    add_camera(hand, CAMERAS[1], 92, (0.090, 0.0, 0.075), (0.02, 0.0, TOOL_FROM_FLANGE + 0.03), WRIST_UP)


def _add_saucer(worldbody: ET.Element) -> None:
    """Flat saucer that a mocap pose places; its tinted middle is where the cup belongs."""
    middle = (sum(geometry.SAUCER_X) / 2, sum(geometry.SAUCER_Y) / 2, 0.0)
    saucer = ET.SubElement(worldbody, "body", name="saucer", mocap="true", pos=text(middle))
    half = geometry.SAUCER_HEIGHT / 2
    geom(saucer, "cylinder", size=f"{geometry.SAUCER_RADIUS} {half}", pos=f"0 0 {half}", rgba=_SAUCER, **_WOOD)
    well = {"size": f"{geometry.SAUCER_WELL} 0.0005", "pos": f"0 0 {geometry.SAUCER_HEIGHT}"}
    geom(saucer, "cylinder", rgba=_SAUCER_WELL, **well, **NO_BITS)


def _add_cup(worldbody: ET.Element) -> None:
    """Upright cup whose frame is the middle of its foot; solid to the fingers, with a dark opening to the cameras."""
    middle = (sum(geometry.CUP_X) / 2, sum(geometry.CUP_Y) / 2, 0.0)
    cup = ET.SubElement(worldbody, "body", name="cup", pos=text(middle))
    ET.SubElement(cup, "freejoint", name="cup_joint")
    half = geometry.CUP_HEIGHT / 2
    size = {"size": f"{geometry.CUP_RADIUS} {half}", "pos": f"0 0 {half}", "mass": str(geometry.CUP_MASS)}
    geom(cup, "cylinder", name="cup", rgba=_CUP, **size, **GRIP, **OBJECT_BITS)
    opening = {"size": f"{geometry.CUP_RADIUS - 0.004} 0.0005", "pos": f"0 0 {geometry.CUP_HEIGHT}", "mass": "0"}
    geom(cup, "cylinder", rgba=_CUP_INSIDE, **opening, **NO_BITS)

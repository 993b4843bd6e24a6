"""MuJoCo scene of dynamic placing around a Franka: table, cup, object and two cameras."""

import math
import xml.etree.ElementTree as ET
from typing import Final

from bid_ros.robots.franka.model import GRIP
from bid_ros.sim.mjcf import OBJECT_BITS, WORLD_BITS, geom, part
from bid_ros.tasks.placing import geometry
from bid_ros.tasks.world import WRIST_UP, add_camera

CAMERAS: Final = ("third_person", "wrist")

_TABLE: Final = "0.55 0.50 0.44 1"
_CUP: Final = "0.20 0.45 0.95 1"
_CUP_FLOOR: Final = "0.06 0.14 0.35 1"
_OBJECT: Final = "1.0 0.45 0.05 1"


def furnish(scene: ET.Element, hand: ET.Element) -> None:
    """Add table, cup, object and cameras, as :meth:`bid_ros.sim.twin.TwinScene.furnish` says."""
    worldbody = part(scene, "worldbody")
    geom(worldbody, "box", name="table", size="0.6 0.6 0.02", pos="0.4 0 -0.02", rgba=_TABLE, **WORLD_BITS)
    _add_cup(worldbody)
    _add_object(worldbody)
    # As near as the cup's range and the held object's lower end at every start allow.
    add_camera(worldbody, CAMERAS[0], 27, (1.26, 0.37, 0.67), (0.56, 0.03, 0.18))
    # Beside the fingers, where wrist cameras are mounted; the palm stays just out of the picture.
    add_camera(hand, CAMERAS[1], 75, (0.09, 0.0, 0.055), (0.03, 0.0, 0.20), WRIST_UP)


def _add_cup(worldbody: ET.Element) -> None:
    """Cup of thin walls that a mocap pose moves; its inner faces lie on a cone from bottom to rim radius."""
    middle = (sum(geometry.CUP_X) / 2, sum(geometry.CUP_Y) / 2)
    cup = ET.SubElement(worldbody, "body", name="cup", mocap="true", pos=f"{middle[0]} {middle[1]} 0")
    # The cup's own friction, paper on wood, holds whatever it touches: priority overrides the object's.
    paper = {"friction": "0.3 0.005 0.0001", "priority": "1", **WORLD_BITS}
    floor = f"{geometry.CUP_BOTTOM_RADIUS + geometry.CUP_WALL} {geometry.CUP_WALL / 2}"
    geom(cup, "cylinder", size=floor, pos=f"0 0 {geometry.CUP_WALL / 2}", rgba=_CUP_FLOOR, **paper)
    lean = math.atan2(geometry.CUP_RIM_RADIUS - geometry.CUP_BOTTOM_RADIUS, geometry.CUP_HEIGHT)
    radius = (geometry.CUP_BOTTOM_RADIUS + geometry.CUP_RIM_RADIUS) / 2 + geometry.CUP_WALL / 2 / math.cos(lean)
    half_width = (geometry.CUP_RIM_RADIUS + geometry.CUP_WALL) * math.tan(math.pi / geometry.CUP_SIDES)
    half_height = geometry.CUP_HEIGHT / 2 / math.cos(lean)
    for side in range(geometry.CUP_SIDES):
        turn = 2 * math.pi * side / geometry.CUP_SIDES
        x, y = radius * math.cos(turn), radius * math.sin(turn)
        size = f"{geometry.CUP_WALL / 2} {half_width} {half_height}"
        place = f"{x} {y} {geometry.CUP_HEIGHT / 2}"
        geom(cup, "box", size=size, pos=place, quat=_quaternion_z_then_y(turn, lean), rgba=_CUP, **paper)


def _quaternion_z_then_y(turn: float, lean: float) -> str:
    """Quaternion wxyz of a turn about z followed by a lean about the turned y axis, rad."""
    cz, sz, cy, sy = math.cos(turn / 2), math.sin(turn / 2), math.cos(lean / 2), math.sin(lean / 2)
    return f"{cz * cy} {-sz * sy} {cz * sy} {sz * cy}"


def _add_object(worldbody: ET.Element) -> None:
    body = ET.SubElement(worldbody, "body", name="object", pos=f"0.25 -0.4 {geometry.OBJECT_LENGTH / 2}")
    ET.SubElement(body, "freejoint", name="object_joint")
    size, mass = f"{geometry.OBJECT_RADIUS} {geometry.OBJECT_LENGTH / 2}", str(geometry.OBJECT_MASS)
    geom(body, "cylinder", name="object", size=size, mass=mass, rgba=_OBJECT, **GRIP, **OBJECT_BITS)

"""The objects of a task file on the table, in the twin of any robot."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any, Final

import mujoco
import numpy as np

from bid_ros.core.errors import TaskError
from bid_ros.core.objects import SceneObject
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.core.task import Task
from bid_ros.robots.robotiq.model import GRIP
from bid_ros.sim.mjcf import NO_BITS, WORLD_BITS, geom, part, text
from bid_ros.tasks.table.layout import ObjectLayout, object_layout
from bid_ros.tasks.table.objects_world import ObjectWorld, own_name
from bid_ros.tasks.table.scene import TableScene

# Wood: its priority overrides the friction of an object's sides, which is the fingers' business.
_WOOD: Final = {"friction": "0.35 0.005 0.0001", "priority": "1", "solref": "0.005 1"}
_TOUCHES_ALL: Final = {"contype": "2", "conaffinity": "7"}  # objects may be put on one another
WALL: Final = 0.003  # m, of what is hollow
SIDES: Final = 12  # walls of a hollow cylinder
PAINT: Final = 0.001  # m over the table, so that a mark is seen
Part = tuple[str, Mapping[str, str]]


class ObjectScene(TableScene):
    """A :class:`bid_ros.sim.twin.TwinScene`: the table, the cameras of a task, and its objects.

    Args:
        task: with objects.

    Raises:
        TaskError: there is no room for an object at its start.
    """

    def __init__(self, task: Task) -> None:
        limits = task.limits
        super().__init__([camera.name for camera in task.cameras], limits.workspace_min, limits.workspace_max)
        self._objects, self.bodies = task.objects, tuple(item.name for item in task.objects)
        self._first = object_layout(self._objects, 0)  # until an episode is laid out nothing overlaps either

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, cameras and objects; TaskError for a name that the robot has, or a mesh that cannot be read."""
        super().furnish(scene, hand)
        worldbody = part(scene, "worldbody")
        part(worldbody, "geom[@name='table']").attrib.update(_WOOD)
        taken = {"world", *(body.get("name") for body in worldbody.iter("body"))}
        for item in self._objects:
            if item.name in taken:
                raise TaskError(f"objects: '{item.name}' is a part of the robot in its twin; valid is another name")
            self._add(scene, worldbody, item)

    def layout(self, seed: int, speed: float) -> ObjectLayout:  # type: ignore[override]
        """Return where everything is in the episode of a seed; TaskError as :func:`object_layout`."""
        return object_layout(self._objects, seed, speed)

    def world(self, model: Any, data: Any) -> ObjectWorld:  # type: ignore[override]
        """Return what happens in a compiled model of this scene."""
        return ObjectWorld(model, data, self._objects)

    def _add(self, scene: ET.Element, worldbody: ET.Element, item: SceneObject) -> None:
        middle, turn = self._first.poses[item.name]
        free, colour = item.moved_by == "robot", text([*item.colour, 1.0])
        fixed = {} if free else {"mocap": "true"}
        pose = {"pos": text(middle.tolist()), "quat": text([math.cos(turn / 2), 0.0, 0.0, math.sin(turn / 2)])}
        body = ET.SubElement(worldbody, "body", {"name": item.name, **pose, **fixed})
        if item.shape == "mark":
            x, y = item.size
            geom(body, "box", size=text([x / 2, y / 2, PAINT / 2]), pos=f"0 0 {PAINT}", rgba=colour, **NO_BITS)
            return
        if free:
            ET.SubElement(body, "freejoint", name=own_name(item.name))
        parts = list(_mesh(scene, item) if item.mesh else _hollow(item) if item.hollow else _solid(item))
        touching = {**GRIP, **(_TOUCHES_ALL if free else WORLD_BITS)}
        for kind, place in parts:
            mass = {"mass": str(item.mass / len(parts))} if free else {}
            geom(body, kind, rgba=colour, **place, **mass, **touching)


def _solid(item: SceneObject) -> Iterator[Part]:
    x, y, z = (side / 2 for side in item.size)
    size = {"box": (x, y, z), "cylinder": (x, z), "sphere": (x,)}[item.shape]
    yield item.shape, {"size": text(size)}


def _hollow(item: SceneObject) -> Iterator[Part]:
    """Floor and walls."""
    x, y, z = (side / 2 for side in item.size)
    floor, low = (x, y, WALL / 2) if item.shape == "box" else (x, WALL / 2), f"0 0 {WALL / 2 - z}"
    yield item.shape, {"size": text(floor), "pos": low}
    if item.shape == "box":
        sides = [(0.0, x, y), (math.pi / 2, y, x), (math.pi, x, y), (-math.pi / 2, y, x)]
    else:
        wide = x * math.tan(math.pi / SIDES)
        sides = [(2 * math.pi * side / SIDES, x, wide) for side in range(SIDES)]
    for angle, far, wide in sides:
        middle = far - WALL / 2
        place = text([middle * math.cos(angle), middle * math.sin(angle), 0.0])
        turn = text([math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)])
        yield "box", {"size": text([WALL / 2, wide, z]), "pos": place, "quat": turn}


def _mesh(scene: ET.Element, item: SceneObject) -> Iterator[Part]:
    """The mesh, scaled to the object's size, its middle in the object's; adds the asset to the scene."""
    low, high = _bounds(item)
    scale = np.array(item.size) / (high - low)
    asset = scene.find("asset")
    asset = ET.SubElement(scene, "asset") if asset is None else asset
    ET.SubElement(asset, "mesh", name=own_name(item.name), file=item.mesh, scale=text(scale.tolist()))
    yield "mesh", {"mesh": own_name(item.name), "pos": text((-scale * (low + high) / 2).tolist())}


def _bounds(item: SceneObject) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the corners of the box around a mesh, ``(3,)`` each, in the units of its file."""
    scene = ET.Element("mujoco")
    ET.SubElement(ET.SubElement(scene, "asset"), "mesh", name="it", file=item.mesh)
    geom(ET.SubElement(scene, "worldbody"), "mesh", mesh="it")
    try:
        model = mujoco.MjModel.from_xml_string(ET.tostring(scene, encoding="unicode"))
    except ValueError as error:
        said = " ".join(str(error).split())
        raise TaskError(f"object '{item.name}': mesh {item.mesh} cannot be read: {said}") from error
    # MuJoCo has turned and moved the vertices into the axes of the mesh's inertia.
    w, x, y, z = model.mesh_quat[0]
    points = model.mesh_vert @ matrix_from_quaternion([x, y, z, w]).T + model.mesh_pos[0]
    low, high = points.min(axis=0), points.max(axis=0)
    if not (high - low > 0).all():
        raise TaskError(f"object '{item.name}': mesh {item.mesh} is flat; valid is a mesh with three dimensions")
    return low, high

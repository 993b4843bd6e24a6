"""An empty table in the twin of any robot, seen by the cameras of a task."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.sim.mjcf import NO_BITS, WORLD_BITS, geom, look, part, text
from bid_ros.tasks.table.objects_world import ObjectTruth
from bid_ros.tasks.world import WRIST_UP, add_camera, on_wrist

_TABLE: Final = "0.55 0.50 0.44 1"
_WORKSPACE: Final = "0.68 0.64 0.57 1"
CAMERA_POSITION: Final = (1.26, 0.37, 0.67)  # m, base frame: of every camera that is not on the wrist
CAMERA_LOOK_AT: Final = (0.45, 0.0, 0.24)
FOVY: Final = 42.0  # degrees
# In the frame of the hand, whose z points along the fingers: beside them, looking past them.
WRIST_CAMERA_POSITION: Final = (0.09, 0.0, 0.06)
WRIST_CAMERA_LOOK_AT: Final = (0.03, 0.0, 0.20)


class EmptyWorld:
    """A :class:`bid_ros.sim.twin.World` in which nothing happens."""

    def lay_out(self, layout: Any) -> None:
        """Do nothing."""

    def start_path(self) -> None:
        """Do nothing."""

    def before_step(self) -> None:
        """Do nothing."""

    def ground_truth(self, stamp_ns: int) -> ObjectTruth:
        """Return that nothing is there."""
        return ObjectTruth({})


def fixed_view() -> tuple[Sequence[float], Sequence[float]]:
    """Return where a camera off the wrist is: ``(3,)`` m, base frame, and ``(4,)`` xyzw, optical frame to base."""
    right, up = np.array(look(CAMERA_POSITION, CAMERA_LOOK_AT).split(), dtype=np.float64).reshape(2, 3)
    return CAMERA_POSITION, quaternion_from_matrix(np.stack([right, -up, -np.cross(right, up)], axis=-1)).tolist()


class TableScene:
    """A :class:`bid_ros.sim.twin.TwinScene`: a table, and the cameras of a task.

    Args:
        cameras: their names, of which :func:`bid_ros.tasks.world.on_wrist` says where they are.
        low, high: corners of the workspace, m, base frame; the table is lighter below it.
    """

    bodies: tuple[str, ...] = ()

    def __init__(self, cameras: Sequence[str], low: Sequence[float], high: Sequence[float]) -> None:
        self._cameras, self._low, self._high = cameras, low, high

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, workspace and cameras."""
        worldbody = part(scene, "worldbody")
        geom(worldbody, "plane", name="table", size="1.5 1.5 0.02", rgba=_TABLE, **WORLD_BITS)
        (left, near), (right, far) = self._low[:2], self._high[:2]
        size, place = ((right - left) / 2, (far - near) / 2, 0.001), ((left + right) / 2, (near + far) / 2, 0.0)
        geom(worldbody, "box", name="workspace", size=text(size), pos=text(place), rgba=_WORKSPACE, **NO_BITS)
        for name in self._cameras:
            if on_wrist(name):
                add_camera(hand, name, 75, WRIST_CAMERA_POSITION, WRIST_CAMERA_LOOK_AT, WRIST_UP)
            else:
                add_camera(worldbody, name, FOVY, CAMERA_POSITION, CAMERA_LOOK_AT)

    def layout(self, seed: int, speed: float) -> None:
        """Return nothing, as nothing is laid out; TaskError if something is to move."""
        if speed:
            raise TaskError(f"target speed is {speed} m/s; valid is 0, as nothing moves on an empty table")

    def world(self, model: Any, data: Any) -> EmptyWorld:
        """Return the world in which nothing happens."""
        return EmptyWorld()

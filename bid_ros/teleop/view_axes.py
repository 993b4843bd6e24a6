"""Steering as a person sees it on a screen: where ahead, left and up of a camera's picture are at the robot."""

from threading import Lock
from typing import Any

import numpy as np

from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.core.task import Task
from bid_ros.core.topics import optical_frame

UP = np.array([0.0, 0.0, 1.0])
FLATTEST = 0.05  # of what is left of a direction over the table, below which it points nowhere


def seen_axes(rotation: Array) -> Array | None:
    """Return ahead, left and up of who sees a camera's picture: ``(3, 3)``, columns, base axes.

    Up is the robot's own up, so a pad for the height goes straight up in every view. Ahead is where the camera looks,
    over the table; of one that looks straight down, the upper edge of its picture.

    Args:
        rotation: ``(3, 3)``, optical frame (x right, y down, z into the picture) to base.

    Returns:
        None if no direction over the table is ahead: the camera looks up at it.
    """
    ahead = (rotation[:, 2] - rotation[:, 1]) * (1.0 - UP)
    length = float(np.linalg.norm(ahead))
    if length < FLATTEST:
        return None
    ahead = ahead / length
    return np.stack([ahead, np.cross(UP, ahead), UP], axis=1)


class Views:
    """The poses of a task's cameras, as ``/tf_static`` tells them. Any thread may use it.

    Args:
        task: names the cameras and the frames, without the prefix of a system.
    """

    def __init__(self, task: Task) -> None:
        self._names = {optical_frame(camera.name): camera.name for camera in task.cameras}
        self._base, self._tool = task.base_frame, task.tool_frame
        self._rotations: dict[str, tuple[str, Array]] = {}
        self._lock = Lock()

    def hear(self, message: Any) -> None:
        """Take a ``tf2_msgs/TFMessage``, its frames without the prefix of a system."""
        for transform in message.transforms:
            name = self._names.get(transform.child_frame_id)
            if name is not None and transform.header.frame_id in (self._base, self._tool):
                turn = transform.transform.rotation
                rotation = matrix_from_quaternion([turn.x, turn.y, turn.z, turn.w])
                with self._lock:
                    self._rotations[name] = transform.header.frame_id, rotation

    def known(self) -> list[str]:
        """Return the cameras by whose picture a person can steer, those that stand still first."""
        with self._lock:
            return sorted(self._rotations, key=lambda name: self._rotations[name][0] != self._base)

    def axes(self, name: str, tool: Array | None) -> Array | None:
        """Return ahead, left and up ``(3, 3)`` of a camera's picture, as :func:`seen_axes`.

        Args:
            name: of the camera.
            tool: ``(3, 3)``, tool to base, for a camera at the wrist; None: nobody knows it.

        Returns:
            None if the camera's pose is not known.
        """
        with self._lock:
            found = self._rotations.get(name)
        if found is None or (found[0] == self._tool and tool is None):
            return None
        frame, rotation = found
        return seen_axes(rotation if frame == self._base or tool is None else tool @ rotation)

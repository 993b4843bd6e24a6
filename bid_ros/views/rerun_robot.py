"""The outline of a robot in Rerun: a mesh for each surface of a link, and where the links are."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bid_ros.core.extras import extra
from bid_ros.core.rotation import Array
from bid_ros.views.outline import Outline, Shell

with extra("view", "bid view"):
    import rerun as rr

EVERY_NS: Final = 50_000_000  # between two poses
FEW: Final = 2000  # faces: a surface of so few is drawn with edges, others smooth


class RerunRobot:
    """Logs a robot to a Rerun recording.

    Args:
        log: of the recording.
        outline: of the robot.
        where: path in the recording that stands for the base frame.
    """

    def __init__(self, log: Callable[..., None], outline: Outline, where: str) -> None:
        self._log, self._outline, self._told_ns = log, outline, 0
        self._paths = {"": f"{where}/robot"}
        for parent, link in (("", outline.links[0]), *outline.tree()):
            self._paths[link] = f"{self._paths[parent]}/{link}"
        for number, shell in enumerate(outline.shells()):
            log(f"{self._paths[shell.link]}/surface_{number}", mesh(shell), static=True)

    def move(self, stamp_ns: int, joints: Any, width: float) -> None:
        """Show the arm at joint angles, rad, with an opening of the gripper, m; not at more than 20 instants a second.

        Raises:
            RecordingError: they are more or fewer than the robot has.
        """
        if stamp_ns - self._told_ns < EVERY_NS:
            return
        self._told_ns = stamp_ns
        for pose in self._outline.poses(joints, width):
            turn = rr.Quaternion(xyzw=pose.quaternion)
            self._log(self._paths[pose.link], rr.Transform3D(translation=pose.position, quaternion=turn))


def mesh(shell: Shell) -> "rr.Mesh3D":
    """Return a surface as Rerun's mesh, with normals, without which it would have no shades."""
    vertices, faces = shell.vertices, shell.faces
    if len(faces) < FEW:
        vertices = vertices[faces].reshape(-1, 3)
        faces = np.arange(len(vertices), dtype=np.int32).reshape(-1, 3)
    return rr.Mesh3D(
        vertex_positions=vertices,
        triangle_indices=faces,
        vertex_normals=normals(vertices, faces),
        albedo_factor=[round(255 * value) for value in shell.colour],
    )


def normals(vertices: Any, faces: Any) -> Array:
    """Return the normal of each vertex ``(n, 3)``: the mean of the faces at it, each by its area."""
    corners = vertices[faces].astype(np.float64)
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    found = np.zeros((len(vertices), 3))
    for corner in range(3):
        np.add.at(found, faces[:, corner], across)
    lengths: Array = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.maximum(lengths, 1e-12)

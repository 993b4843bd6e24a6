"""The outline of a robot, link by link, and the state of its scene: for viewers that draw a robot of their own accord.

It is that of the twin's pictures (:func:`bid_ros.tasks.twins.picture_model`), so it needs no description package.
"""

import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ArmError, RecordingError
from bid_ros.core.files import replacing
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.robots.registry import ROBOTS
from bid_ros.tasks.twins import picture_model


class ScenePose:
    """The state of a scene, from what is known of its arm, its gripper and the bodies in it.

    Args:
        model: of the scene: the arm's hinges come first, the two fingers slide, bodies are free or mocap.

    Attributes:
        qpos: ``(nq,)``; mocap_pos: ``(bodies, 3)`` m; mocap_quat: ``(bodies, 4)`` wxyz.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, data = model, mujoco.MjData(model)
        self.qpos, self.mocap_pos, self.mocap_quat = data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy()
        kinds = mujoco.mjtJoint
        places = {kind: model.jnt_qposadr[model.jnt_type == kind] for kind in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE)}
        self._hinges, self._fingers = places[kinds.mjJNT_HINGE], places[kinds.mjJNT_SLIDE]

    def set_arm(self, joints: Any, width: float) -> None:
        """Put the arm at joint angles, rad, with an opening of the gripper in m; NaN: as before."""
        if len(joints) != len(self._hinges):
            raise RecordingError(f"the arm status has {len(joints)} joints; valid are {len(self._hinges)}")
        self.qpos[self._hinges] = joints
        if np.isfinite(width):
            self.qpos[self._fingers] = width / 2

    def set_body(self, name: str, position: Any, wxyz: Any) -> None:
        """Put a body at a position ``(3,)`` m and a quaternion ``(4,)`` wxyz, base frame."""
        body = self._model.body(name)
        mocap = int(body.mocapid[0])
        if mocap >= 0:
            self.mocap_pos[mocap], self.mocap_quat[mocap] = position, wxyz
            return
        first = int(self._model.jnt_qposadr[body.jntadr[0]])
        self.qpos[first : first + 7] = [*position, *wxyz]


COLLISION_GROUP: Final = 3  # geoms that only collide, by the convention of MuJoCo's models
SIDES: Final = 24  # of what is round
_SHAPES: Final = {
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_MESH): "mesh",
}


@dataclass(frozen=True, eq=False)
class Shell:
    """A surface of one colour on a link.

    Attributes:
        link: its name.
        colour: rgba, 0 to 1.
        vertices: ``(n, 3)`` m, link frame.
        faces: ``(m, 3)`` numbers of vertices.
    """

    link: str
    colour: tuple[float, float, float, float]
    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LinkPose:
    """Where a link is.

    Attributes:
        parent: name of the link before it; empty: the base frame.
        link: its name.
        position: ``(3,)`` m, in the parent's frame.
        quaternion: ``(4,)`` xyzw, link to parent.
    """

    parent: str
    link: str
    position: Array
    quaternion: Array


class Outline:
    """Surfaces of a robot's links, and where the links are. One thread only.

    Args:
        model: of a scene, as :func:`bid_ros.tasks.twins.picture_model` makes it.

    Attributes:
        links: names, base first.

    Raises:
        ArmError: no joint of the scene turns, so there is no robot in it.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, self._data, self._pose = model, mujoco.MjData(model), ScenePose(model)
        hinges = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE]
        if not len(hinges):
            raise ArmError("the scene has no joint that turns; valid is a scene with a robot")
        root = int(model.body_rootid[hinges[0]])
        self._bodies = [body for body in range(model.nbody) if int(model.body_rootid[body]) == root]
        names = [str(model.body(body).name) for body in self._bodies]
        prefix = names[0][: names[0].rfind("_") + 1]  # franky-sim's robot0_
        whole = all(name.startswith(prefix) for name in names)
        self._names = {
            body: name.removeprefix(prefix if whole else "") for body, name in zip(self._bodies, names, strict=True)
        }
        self.links = tuple(self._names.values())

    def shells(self) -> Iterator[Shell]:
        """Yield the surfaces, those of one link and colour as one."""
        parts: dict[tuple[str, tuple[float, ...]], list[tuple[Any, Any]]] = {}
        for geom in range(self._model.ngeom):
            link = self._names.get(int(self._model.geom_bodyid[geom]))
            shape = _SHAPES.get(int(self._model.geom_type[geom]))
            if link is not None and shape is not None and self._model.geom_group[geom] < COLLISION_GROUP:
                parts.setdefault((link, self._colour(geom)), []).append(self._surface(geom, shape))
        for (link, colour), found in parts.items():
            starts = np.cumsum([0, *(len(vertices) for vertices, _ in found[:-1])])
            faces = np.concatenate([face + start for (_, face), start in zip(found, starts, strict=True)])
            vertices = np.concatenate([vertices for vertices, _ in found])
            red, green, blue, alpha = colour
            yield Shell(link, (red, green, blue, alpha), vertices.astype(np.float32), faces.astype(np.int32))

    def poses(self, joints: Any, width: float) -> list[LinkPose]:
        """Return where the links are.

        Args:
            joints: of the arm, rad.
            width: opening of the gripper, m; NaN: as before.

        Raises:
            RecordingError: they are more or fewer than the robot has.
        """
        self._pose.set_arm(joints, width)
        self._data.qpos[:] = self._pose.qpos
        mujoco.mj_kinematics(self._model, self._data)
        return [self._relative(body) for body in self._bodies]

    def tree(self) -> list[tuple[str, str]]:
        """Return (parent, link) of every link but the first."""
        parents = [int(self._model.body_parentid[body]) for body in self._bodies[1:]]
        return [(self._names[parent], link) for parent, link in zip(parents, self.links[1:], strict=True)]

    def _relative(self, body: int) -> LinkPose:
        parent = int(self._model.body_parentid[body])
        turn, position, quaternion = np.zeros(4), np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(turn, self._data.xquat[parent])
        mujoco.mju_rotVecQuat(position, self._data.xpos[body] - self._data.xpos[parent], turn)
        mujoco.mju_mulQuat(quaternion, turn, self._data.xquat[body])
        return LinkPose(self._names.get(parent, ""), self._names[body], position, np.roll(quaternion, -1))

    def _colour(self, geom: int) -> tuple[float, ...]:
        material = int(self._model.geom_matid[geom])
        rgba = self._model.geom_rgba[geom] if material < 0 else self._model.mat_rgba[material]
        return tuple(round(float(value), 3) for value in rgba)

    def _surface(self, geom: int, shape: str) -> tuple[Any, Any]:
        """Return vertices in the link's frame, and faces."""
        size = self._model.geom_size[geom]
        if shape == "mesh":
            vertices, faces = self._mesh(int(self._model.geom_dataid[geom]))
        elif shape == "box":
            vertices, faces = hull(np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size)
        else:
            vertices, faces = round_body(float(size[0]), float(size[1]), shape == "capsule")
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, self._model.geom_quat[geom])
        return vertices @ turn.reshape(3, 3).T + self._model.geom_pos[geom], faces

    def _mesh(self, mesh: int) -> tuple[Any, Any]:
        model = self._model
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        start, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        return model.mesh_vert[first : first + count].copy(), model.mesh_face[start : start + faces].copy()


def outline_of(task: Task) -> Outline:
    """Return the outline of a task's robot.

    Raises:
        ArmError: its driver, not its twin, knows how it looks; or as :func:`bid_ros.tasks.twins.picture_model`.
    """
    if ROBOTS.find(task.robot).over_ros:
        raise ArmError(f"robot '{task.robot}' has no outline here: its own ROS driver publishes robot_description")
    return Outline(picture_model(task))


def hull(points: Array) -> tuple[Array, NDArray[np.int32]]:
    """Return the convex hull of points ``(n, 3)``: the points, and faces that are seen from outside anticlockwise."""
    from scipy.spatial import ConvexHull  # takes a while to import

    faces = np.asarray(ConvexHull(points).simplices, dtype=np.int32)
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, corners[:, 0] - points.mean(axis=0)) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    return points, faces


def round_body(radius: float, half: float, capped: bool) -> tuple[Array, NDArray[np.int32]]:
    """Return a cylinder along z, or a capsule: vertices ``(n, 3)`` m and faces.

    Args:
        radius: m.
        half: half of the length without caps, m.
        capped: with a hemisphere at either end.
    """
    tilts = np.linspace(0, np.pi / 2, SIDES // 4, endpoint=False) if capped else np.zeros(1)
    around = np.linspace(0, 2 * np.pi, SIDES, endpoint=False)
    rings = [
        np.stack([r * np.cos(around), r * np.sin(around), np.full(SIDES, side * height)], axis=1)
        for r, height in zip(radius * np.cos(tilts), half + radius * np.sin(tilts), strict=True)
        for side in (-1, 1)
    ]
    poles = [[[0.0, 0.0, side * (half + radius)] for side in (-1, 1)]] if capped else []
    return hull(np.concatenate([*rings, *poles]))


def write_urdf(outline: Outline, folder: Path, prefix: str) -> str:
    """Write the surfaces as STL files, and return the URDF that names them.

    Args:
        outline: of the robot.
        folder: for the files; whoever shows the URDF must be able to read them.
        prefix: precedes the name of every link, so that no other publisher has the same frames.
    """
    folder.mkdir(parents=True, exist_ok=True)
    robot = ET.Element("robot", name="robot")
    links = {name: ET.SubElement(robot, "link", name=prefix + name) for name in outline.links}
    for number, shell in enumerate(outline.shells()):
        file = folder / f"{number:03d}_{shell.link}.stl"
        write_stl(shell, file)
        visual = ET.SubElement(links[shell.link], "visual")
        geometry = ET.SubElement(visual, "geometry")
        ET.SubElement(geometry, "mesh", filename=file.resolve().as_uri())
        material = ET.SubElement(visual, "material", name=f"{shell.link}_{number}")
        ET.SubElement(material, "color", rgba=" ".join(f"{value:g}" for value in shell.colour))
    for parent, child in outline.tree():
        # Where a link is, the transforms say; a tree of fixed joints only names what belongs together.
        joint = ET.SubElement(robot, "joint", name=f"{prefix}{child}_joint", type="fixed")
        ET.SubElement(joint, "parent", link=prefix + parent)
        ET.SubElement(joint, "child", link=prefix + child)
    return ET.tostring(robot, encoding="unicode")


def write_stl(shell: Shell, file: Path) -> None:
    """Write a surface as a binary STL file, whole or not at all."""
    corners = shell.vertices[shell.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    rows = np.zeros(len(corners), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    rows["normal"], rows["corners"] = normals, corners
    with replacing(file) as part:
        part.write_bytes(b"bid_ros".ljust(80) + struct.pack("<I", len(rows)) + rows.tobytes())

"""What happens to the objects of a task file in the twin: laid out by a seed, then moved by a person, or left alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mujoco
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.objects import SceneObject
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.table.layout import ObjectLayout
from bid_ros.tasks.world import xyzw

HAND: Final = 1  # contact type of what belongs to the hand
TOUCHES: Final = -0.001  # m between hand and object from which on the hand is in the way


def own_name(name: str) -> str:
    """Return the name of an object's joint and of its mesh: no robot has one of this name."""
    return f"object {name}"


@dataclass(frozen=True)
class ObjectTruth:
    """Where the objects are. For scoring and scripted demonstrations, never for a policy."""

    bodies: Mapping[str, Pose]


class ObjectWorld:
    """A :class:`bid_ros.sim.twin.World` with the objects of a task.

    Args:
        model, data: of a scene that :class:`bid_ros.tasks.table.furniture.ObjectScene` has furnished.
        objects: of the task.
    """

    def __init__(self, model: Any, data: Any, objects: Sequence[SceneObject]) -> None:
        self._model, self._data = model, data
        self._free = {item.name: data.joint(own_name(item.name)) for item in objects if item.moved_by == "robot"}
        self._mocap = {item.name: int(model.body(item.name).mocapid[0]) for item in objects if item.moved_by != "robot"}
        self._names = [item.name for item in objects]
        self._layout: ObjectLayout | None = None
        self._moving, self._path_s = False, 0.0

    def lay_out(self, layout: ObjectLayout) -> None:
        """Put every object where the layout has it, at rest.

        Raises:
            ArmError: the gripper is where an object is to be. Nothing changes then.
        """
        data = self._data
        before = data.qpos.copy(), data.qvel.copy(), data.mocap_pos.copy(), data.mocap_quat.copy()
        for name, (middle, angle) in layout.poses.items():
            self._put(name, middle, np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]))
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_collision(self._model, data)
        hit = self._hit()
        if hit:
            data.qpos[:], data.qvel[:], data.mocap_pos[:], data.mocap_quat[:] = before
            raise ArmError(f"the gripper is where '{hit}' is to be in the next episode of the twin: raise it first")
        self._layout, self._moving, self._path_s = layout, False, 0.0

    def start_path(self) -> None:
        """Let a person begin to move what they move."""
        self._moving = True

    def before_step(self) -> None:
        """Move what a person moves."""
        if self._moving and self._layout is not None and self._layout.circles:
            self._path_s += self._model.opt.timestep
            for name, circle in self._layout.circles.items():
                self._data.mocap_pos[self._mocap[name], :2] = circle.position(self._path_s)

    def ground_truth(self, stamp_ns: int) -> ObjectTruth:
        """Return where the middle of every object is."""
        return ObjectTruth({name: self._pose(name) for name in self._names})

    def _put(self, name: str, middle: Array, quaternion: Array) -> None:
        if name in self._free:
            self._free[name].qpos[:] = [*middle, *quaternion]
            self._free[name].qvel[:] = 0.0
        else:
            self._data.mocap_pos[self._mocap[name]], self._data.mocap_quat[self._mocap[name]] = middle, quaternion

    def _pose(self, name: str) -> Pose:
        if name in self._free:
            pose = self._free[name].qpos
            return pose[:3].copy(), xyzw(pose[3:])
        row = self._mocap[name]
        return self._data.mocap_pos[row].copy(), xyzw(self._data.mocap_quat[row])

    def _hit(self) -> str:
        """Return the name of an object that the hand is in; empty if there is none."""
        contact, kinds, bodies = self._data.contact, self._model.geom_contype, self._model.geom_bodyid
        for pair, distance in zip(contact.geom.tolist(), contact.dist.tolist(), strict=True):
            first, second = (int(kinds[geom]) == HAND for geom in pair)
            if distance < TOUCHES and first != second:
                return str(self._model.body(int(bodies[pair[1 if first else 0]])).name)
        return ""

"""The state of a MuJoCo scene, from what messages say of its arm, its gripper and its bodies."""

from typing import Any

import mujoco
import numpy as np

from bid_ros.core.errors import RecordingError


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

"""The placing scene without physics: the arm is exactly at its command, and the cameras render it."""

from collections.abc import Mapping, Sequence
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.robots.franka.model import HOME_Q, ROBOT, scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.placing.geometry import CUP_WALL, OBJECT_LENGTH
from bid_ros.tasks.placing.scene import CAMERAS
from bid_ros.tasks.placing.world import SCENE, PlacingWorld, object_in_hand

DAMPING: Final = 1e-4
STEPS: Final = 60
REACHED_M: Final = 2e-4


class KinematicScene(PlacingWorld):
    """Poses the arm by inverse kinematics and renders the cameras. One thread only, as the renderer.

    Args:
        width, height: size of the images in pixels.
        cameras: names of the cameras to render.

    Raises:
        CameraError: no offscreen rendering works here.
    """

    def __init__(self, width: int = 96, height: int = 96, cameras: Sequence[str] = CAMERAS) -> None:
        model = scene_model(SCENE)
        self._renderer = SceneRenderer(model, width, height, cameras)
        super().__init__(model, mujoco.MjData(model))
        joints = [self._model.joint(f"{ROBOT}fr3_joint{number}") for number in range(1, 8)]
        self._qpos = [int(joint.qposadr[0]) for joint in joints]
        self._dof = [int(joint.dofadr[0]) for joint in joints]
        self._jacobian = np.zeros((6, self._model.nv))
        self.home()

    def home(self) -> None:
        """Put the joints at their home angles. The next inverse kinematics starts from there."""
        self._data.qpos[self._qpos] = HOME_Q
        mujoco.mj_kinematics(self._model, self._data)

    def move(self, position: Array, quaternion: Array) -> None:
        """Pose the tool at ``(3,)`` m and ``(4,)`` xyzw, base frame, by damped least squares.

        Raises:
            ArmError: the arm does not reach the pose.
        """
        wanted = matrix_from_quaternion(quaternion)
        for _ in range(STEPS):
            off = self._error(position, wanted)
            if np.abs(off).max() < REACHED_M:
                return
            tool = self.tool_position
            mujoco.mj_comPos(self._model, self._data)
            mujoco.mj_jac(self._model, self._data, self._jacobian[:3], self._jacobian[3:], tool, self._hand.id)
            columns = self._jacobian[:, self._dof]
            self._data.qpos[self._qpos] += columns.T @ np.linalg.solve(columns @ columns.T + DAMPING * np.eye(6), off)
            mujoco.mj_kinematics(self._model, self._data)
        raise ArmError(f"the arm cannot put its tool at {np.round(position, 3).tolist()} m; it stays {off[:3]} m away")

    def images(self, gripper_width: float, in_hand: bool, cup: Array) -> Mapping[str, NDArray[np.uint8]]:
        """Return one ``(height, width, 3)`` rgb8 image per camera.

        Args:
            gripper_width: opening, m.
            in_hand: whether the object is between the fingers; else it stands in the cup.
            cup: ``(2,)`` axis of the cup on the table, m, base frame.
        """
        data = self._data
        for finger in self._fingers:
            finger.qpos[:] = gripper_width / 2
        pose = np.array([*cup, CUP_WALL + OBJECT_LENGTH / 2, 1.0, 0.0, 0.0, 0.0])
        self._object.qpos[:] = object_in_hand(self._hand) if in_hand else pose
        data.mocap_pos[self._cup, :2] = cup
        return self._renderer.render(data.qpos, data.mocap_pos, data.mocap_quat)

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

    def _error(self, position: Array, wanted: Array) -> Array:
        turn = wanted @ self._hand.xmat.reshape(3, 3).T
        axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        return np.concatenate([position - self.tool_position, axis / 2])

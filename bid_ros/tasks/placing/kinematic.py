"""The placing scene without physics: the arm is exactly at its command, and the cameras render it."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array
from bid_ros.robots.franka.model import LIMBS, scene_model
from bid_ros.sim.limbs import ToolReach
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.placing.geometry import CUP_WALL, OBJECT_LENGTH
from bid_ros.tasks.placing.scene import CAMERAS
from bid_ros.tasks.placing.world import SCENE, PlacingWorld, object_in_hand


class KinematicScene(PlacingWorld):
    """Poses the arm by inverse kinematics and renders the cameras. One thread only, as the renderer.

    Args:
        width, height: size of the images in pixels.
        cameras: names of the cameras to render.

    Raises:
        CameraError: no offscreen rendering works here.
    """

    def __init__(self, width: int = 96, height: int = 96, cameras: Sequence[str] = CAMERAS) -> None:
        model = scene_model(SCENE.named(CAMERAS, cameras))
        self._renderer = SceneRenderer(model, width, height, cameras)
        super().__init__(model, mujoco.MjData(model))
        self._reach = ToolReach(self._model, self._data, LIMBS)
        self.home()

    def home(self) -> None:
        """Put the joints at their home angles. The next inverse kinematics starts from there."""
        self._reach.home(LIMBS.home)

    def move(self, position: Array, quaternion: Array) -> None:
        """Pose the tool at ``(3,)`` m and ``(4,)`` xyzw, base frame; ArmError if the arm does not reach that."""
        self._reach.move(position, quaternion)

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

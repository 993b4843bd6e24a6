"""The stage of placing without physics: the arm is exactly at its command, and contact is geometry."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import DOWN_QUATERNION
from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import STEP_NS
from bid_ros.tasks.placing import geometry
from bid_ros.tasks.placing.cup_path import episode_scene
from bid_ros.tasks.placing.kinematic import KinematicScene
from bid_ros.tasks.placing.score import RELEASE_MARGIN

DOWN: Final = np.array(DOWN_QUATERNION)
FINGER_SPEED: Final = 0.1  # m/s of the opening
RELEASED_M: Final = geometry.OBJECT_DIAMETER + RELEASE_MARGIN
PLAY_M: Final = geometry.CUP_RIM_RADIUS - geometry.OBJECT_RADIUS  # of the object beside the axis at the rim
TOUCH_M: Final = 0.004  # by which it may be farther: the grip gives way


class PlacingStage:
    """A :class:`bid_ros.tasks.base.Stage`. Its outcomes are ``success``, ``dropped`` and ``touched``.

    ``dropped``: released beside or above the cup. ``touched``: went down on the rim.

    Args:
        width, height: size of the images in pixels.
        cameras: names of the scene's cameras.
        thresholds: not used. The gripper opens for any width above the object's.

    Attributes:
        measured: pose of the tool.
        width: opening of the gripper, m.

    Raises:
        CameraError: no offscreen rendering works here.
    """

    def __init__(
        self, width: int, height: int, cameras: Sequence[str], thresholds: GripperThresholds | None = None
    ) -> None:
        self._scene = KinematicScene(width, height, cameras)
        self.begin(0, np.zeros(3), 0.0)

    def begin(self, seed: int, start: Array, speed: float) -> None:
        """Put the tool at ``start``, the object in its gripper, and the cup on the path of the seed."""
        self._path, self._elapsed_s = episode_scene(seed, speed).path, 0.0
        self.measured: Pose = (start, DOWN)
        self.width, self._held, self._touched = geometry.OBJECT_DIAMETER, True, False
        self._scene.home()

    @property
    def bodies(self) -> Mapping[str, Array]:
        """Position of the cup."""
        return {"cup": np.append(self._path.position(self._elapsed_s), 0.0)}

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return the images of the cameras."""
        self._scene.move(*self.measured)
        return self._scene.images(self.width, self._held, self._path.position(self._elapsed_s))

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Go one step on. The tool is exactly at its command afterwards."""
        self.measured = (position, quaternion)
        opening = gripper is not None and gripper > geometry.OBJECT_DIAMETER
        change = FINGER_SPEED * STEP_NS / NANOSECONDS * (1 if opening else -1)
        self.width = min(max(self.width + change, geometry.OBJECT_DIAMETER), OPEN_WIDTH)
        self._elapsed_s += STEP_NS / NANOSECONDS
        return self._judge()

    def give_up(self) -> str:
        """Return ``touched`` if the object was on the rim, else ``timeout``."""
        return "touched" if self._touched else "timeout"

    def close(self) -> None:
        """Free the renderer."""
        self._scene.close()

    def _judge(self) -> str:
        position = self.measured[0]
        beside = math.hypot(*(position[:2] - self._path.position(self._elapsed_s)))
        depth = geometry.CUP_HEIGHT - (position[2] - geometry.OBJECT_BOTTOM_BELOW_TOOL)
        if depth > 0 and beside > PLAY_M + TOUCH_M:
            self._touched = True
        if self.width <= RELEASED_M:
            return ""
        self._held = False
        if self._touched:
            return "touched"
        return "success" if beside <= PLAY_M and depth > -0.01 else "dropped"

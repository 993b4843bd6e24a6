"""The stage of picking: the twin's physics without its controller, sockets and clock."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bid_ros.robots.gripper import GripperThresholds
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.ur.twin.model import scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING
from bid_ros.tasks.picking.lockstep import PickingLockstep
from bid_ros.tasks.picking.scene import CAMERAS
from bid_ros.tasks.picking.score import PickingScore
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.picking.world import SCENE


class PickingStage:
    """A :class:`bid_ros.tasks.base.Stage`. Its outcomes are ``success`` and ``dropped``, as in the twin.

    Args:
        width, height: size of the images in pixels.
        cameras: names of the scene's cameras.
        thresholds: thresholds of the gripper, from the arm's configuration.

    Raises:
        CameraError: no offscreen rendering works here.
    """

    def __init__(self, width: int, height: int, cameras: Sequence[str], thresholds: GripperThresholds) -> None:
        self._renderer = SceneRenderer(scene_model(SCENE.named(CAMERAS, cameras)), width, height, cameras)
        self._score = PickingScore()
        self._scene: PickingLockstep  # of the episode that plays
        self._open: bool | None
        self._thresholds = thresholds

    @property
    def measured(self) -> Pose:
        """Pose of the tool."""
        truth = self._scene.truth
        return truth.tool_position, truth.tool_quaternion

    @property
    def width(self) -> float:
        """Opening of the gripper, m."""
        return self._scene.truth.gripper_width

    @property
    def bodies(self) -> Mapping[str, Array]:
        """Positions of cup and saucer."""
        return {name: position for name, (position, _) in self._scene.truth.bodies.items()}

    def begin(self, seed: int, start: Array, speed: float) -> None:
        """Put the tool at ``start``, gripper open; lay out cup and saucer for the seed; start the string."""
        self._scene = PickingLockstep(picking_layout(seed, speed), start)
        self._scene.start_path()
        self._score.reset()
        self._open = True

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return the images of the cameras."""
        state = self._scene.scene_state()
        return self._renderer.render(state.qpos, state.mocap_pos, state.mocap_quat)

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Go one step of the physics on, to a pose of the tool."""
        if gripper is not None:
            self._open = self._thresholds.wants_open(gripper, self._open)
        width = MAX_OPENING if self._open else 0.0
        truth = self._scene.cycle(position, width, quaternion)
        outcome = self._score.update(truth.stamp_ns, truth.bodies, truth.tool_position, truth.gripper_width)
        return "" if outcome == PENDING else outcome

    def give_up(self) -> str:
        """Return ``timeout``."""
        return "timeout"

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

"""Picking with the twin's own physics, but without its controller, sockets and clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.arms.gripper import GripperThresholds
from bid_ros.evaluation.stage import Array, Pose
from bid_ros.evaluation.trial import PENDING, PickingTrial
from bid_ros.sim.picking_lockstep import PickingLockstep
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.scenes import PICKING, scene_model
from bid_ros.sim.string_path import picking_layout

THRESHOLDS: Final = GripperThresholds(close_below=0.03, open_above=0.07)  # m, as in config/ur_arm.yaml
OPEN_WIDTH, CLOSED_WIDTH = 0.085, 0.0  # m


class PickingStage:
    """A :class:`bid_ros.evaluation.stage.Stage`; its outcomes are ``success`` and ``dropped``, as in the twin.

    Args:
        width, height: of the images, pixels.
        cameras: names of the scene's cameras.

    Raises:
        CameraError: if no offscreen rendering works here.
    """

    def __init__(self, width: int, height: int, cameras: Sequence[str]) -> None:
        self._renderer = SceneRenderer(width, height, cameras, scene_model(PICKING))
        self._trial = PickingTrial()
        self._scene: PickingLockstep | None = None
        self._open: bool | None = True

    @property
    def measured(self) -> Pose:
        """Where the tool is."""
        truth = self._running().truth
        return truth.tool_position, truth.tool_quaternion

    @property
    def width(self) -> float:
        """Opening of the gripper, m."""
        return self._running().truth.gripper_width

    def begin(self, seed: int, start: Array, cup_speed: float) -> None:
        """Put the tool at ``start`` with its gripper open, cup and saucer where the seed has them, and pull."""
        self._scene = PickingLockstep(picking_layout(seed, cup_speed), start)
        self._scene.start_path()
        self._trial.reset()
        self._open = True

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return what the cameras see."""
        state = self._running().scene_state()
        return self._renderer.render(state.qpos, state.mocap_pos, state.mocap_quat)

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Pass a step of the physics, at whose end the arm should be at a pose."""
        if gripper is not None:
            self._open = THRESHOLDS.wants_open(gripper, self._open)
        width = OPEN_WIDTH if self._open else CLOSED_WIDTH
        truth = self._running().cycle(position, width, quaternion)
        outcome = self._trial.update(truth.stamp_ns, truth.bodies, truth.tool_position, truth.gripper_width)
        return "" if outcome == PENDING else outcome

    def give_up(self) -> str:
        """Return ``timeout``."""
        return "timeout"

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

    def _running(self) -> PickingLockstep:
        assert self._scene is not None, "begin comes first"
        return self._scene

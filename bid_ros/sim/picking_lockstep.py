"""The picking scene stepped by whoever uses it: the twin's physics without sockets, threads or a clock."""

from __future__ import annotations

from typing import Final

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.kinematics.ur import UR5E
from bid_ros.rotation import DOWN_QUATERNION, matrix_from_quaternion, vector_from_matrix
from bid_ros.sim.picking import PickingEpisode, PickingTruth
from bid_ros.sim.picking_geometry import HOME_Q
from bid_ros.sim.picking_scene import picking_model
from bid_ros.sim.scene_state import SceneState
from bid_ros.sim.string_path import PickingLayout
from bid_ros.sim.ur.gripper_model import TOOL_FROM_FLANGE, FingerDrive
from bid_ros.sim.ur.mujoco_plant import MujocoPlant

Array = NDArray[np.float64]
TCP: Final = (0.0, 0.0, TOOL_FROM_FLANGE, 0.0, 0.0, 0.0)
CYCLE_S: Final = 0.01
FINGER_SPEED: Final = 0.15  # m/s of the opening
FINGER_FORCE: Final = 30.0  # N


class PickingLockstep:
    """One episode at its start: the arm over the table, the gripper open, the cup on its string. One thread only.

    The arm keeps to what it is asked for as the twin's does (:class:`bid_ros.sim.ur.mujoco_plant.MujocoPlant`), but
    without a controller's smoothing and delay: who wants those puts them in front.

    Args:
        layout: of the episode.
        tool_start: ``(3,)`` m, base frame, where the tool is, pointing straight down.

    Raises:
        ArmError: if the arm cannot reach the start, or the start is too low.
    """

    def __init__(self, layout: PickingLayout, tool_start: ArrayLike) -> None:
        self.layout = layout
        self._model = picking_model()
        self._data = mujoco.MjData(self._model)
        self._fingers = FingerDrive(self._model, self._data)
        self._q = self._joints(np.asarray(tool_start, dtype=np.float64), np.array(DOWN_QUATERNION), np.array(HOME_Q))
        self._plant = MujocoPlant(self._model, self._data, self._q, self._before_step)
        self._episode = PickingEpisode(self._model, self._data)
        self._episode.lay_out(layout)
        mujoco.mj_forward(self._model, self._data)
        self._cycles = 0

    @property
    def now_s(self) -> float:
        """Time since the start, s."""
        return self._cycles * CYCLE_S

    @property
    def truth(self) -> PickingTruth:
        """Where everything is; its stamp counts from the start."""
        return self._episode.ground_truth(round(self.now_s * 1e9))

    def lay_out(self, layout: PickingLayout) -> None:
        """Begin another episode where the arm is now; ArmError if the gripper is not open or the tool too low."""
        self._episode.lay_out(layout)
        self.layout = layout

    def start_path(self) -> None:
        """Let the string begin to pull."""
        self._episode.start_path()

    def cycle(self, position: Array, width: float, quaternion: ArrayLike = DOWN_QUATERNION) -> PickingTruth:
        """Pass a cycle of ``CYCLE_S``, at whose end the tool should be at a pose; return what is then.

        Args:
            position: ``(3,)`` m, base frame.
            width: m that the gripper is asked for.
            quaternion: ``(4,)`` xyzw.

        Raises:
            ArmError: if the arm cannot reach the pose or the gripper has no such width.
        """
        target = self._joints(position, quaternion, self._q)
        if width != self._fingers.target:
            self._fingers.command(width, FINGER_SPEED, FINGER_FORCE)
        self._plant.step(target, (target - self._q) / CYCLE_S, CYCLE_S)
        self._q = target
        self._cycles += 1
        return self.truth

    def scene_state(self) -> SceneState:
        """Return what a renderer needs; its stamp counts from the start."""
        data = self._data
        stamp_ns = round(self.now_s * 1e9)
        return SceneState(stamp_ns, data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())

    def _before_step(self) -> None:
        self._fingers.step(self._model.opt.timestep)
        self._episode.before_step()

    @staticmethod
    def _joints(position: Array, quaternion: ArrayLike, near: Array) -> Array:
        turn = vector_from_matrix(matrix_from_quaternion(quaternion))
        return UR5E.inverse([*position, *turn], near, TCP)

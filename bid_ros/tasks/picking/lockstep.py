"""The picking scene in lockstep: the twin's physics without sockets, threads or a clock."""

from typing import Final

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.rotation import DOWN_QUATERNION, matrix_from_quaternion, vector_from_matrix
from bid_ros.robots.robotiq.model import TOOL_FROM_FLANGE, FingerDrive
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.model import HOME_Q, scene_model
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant
from bid_ros.sim.twin import Array, SceneState
from bid_ros.tasks.picking.string_path import PickingLayout
from bid_ros.tasks.picking.world import SCENE, PickingWorld
from bid_ros.tasks.world import TaskTruth

TCP: Final = (0.0, 0.0, TOOL_FROM_FLANGE, 0.0, 0.0, 0.0)
CYCLE_S: Final = 0.01
FINGER_SPEED: Final = 0.15  # m/s of the opening
FINGER_FORCE: Final = 30.0  # N


class PickingLockstep(PickingWorld):
    """One episode at its start: the arm over the table, the gripper open, the cup on its string. One thread only.

    The arm follows its commands like that of the twin (:mod:`bid_ros.robots.ur.twin.mujoco_plant`), but without the
    smoothing and the delay of a controller.

    Args:
        layout: layout of the episode.
        tool_start: ``(3,)`` m, base frame. The tool points straight down.

    Raises:
        ArmError: the arm cannot reach the start, or the start is too low.
    """

    def __init__(self, layout: PickingLayout, tool_start: ArrayLike) -> None:
        model = scene_model(SCENE)
        super().__init__(model, mujoco.MjData(model))
        self._drive = FingerDrive(model, self._data)
        self._q = self._joints(np.asarray(tool_start, dtype=np.float64), np.array(DOWN_QUATERNION), np.array(HOME_Q))
        self._plant = MujocoPlant(model, self._data, self._q, self.before_step)
        self.lay_out(layout)
        mujoco.mj_forward(model, self._data)
        self._cycles = 0

    @property
    def now_s(self) -> float:
        """Time since the start, s."""
        return self._cycles * CYCLE_S

    @property
    def truth(self) -> TaskTruth:
        """Poses of everything. Its stamp counts from the start."""
        return self.ground_truth(round(self.now_s * 1e9))

    def lay_out(self, layout: PickingLayout) -> None:
        """Begin another episode, the arm where it is. Raises ArmError if the gripper is not open or too low."""
        super().lay_out(layout)
        self.layout = layout

    def cycle(self, position: Array, width: float, quaternion: ArrayLike = DOWN_QUATERNION) -> TaskTruth:
        """Go on by a cycle of ``CYCLE_S``, to a pose of the tool. Return the poses after it.

        Args:
            position: ``(3,)`` m, base frame.
            width: commanded width of the gripper, m.
            quaternion: ``(4,)`` xyzw.

        Raises:
            ArmError: the arm cannot reach the pose, or the gripper has no such width.
        """
        target = self._joints(position, quaternion, self._q)
        if width != self._drive.target:
            self._drive.command(width, FINGER_SPEED, FINGER_FORCE)
        self._plant.step(target, (target - self._q) / CYCLE_S, CYCLE_S)
        self._q = target
        self._cycles += 1
        return self.truth

    def scene_state(self) -> SceneState:
        """Return the state for a renderer. Its stamp counts from the start."""
        data = self._data
        stamp_ns = round(self.now_s * 1e9)
        return SceneState(stamp_ns, data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())

    def before_step(self) -> None:
        """See :meth:`bid_ros.sim.twin.World.before_step`: the fingers' drive first."""
        self._drive.step(self._model.opt.timestep)
        super().before_step()

    @staticmethod
    def _joints(position: Array, quaternion: ArrayLike, near: Array) -> Array:
        turn = vector_from_matrix(matrix_from_quaternion(quaternion))
        return UR5E.inverse([*position, *turn], near, TCP)

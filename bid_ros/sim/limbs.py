"""The arm and the hand of a robot's MuJoCo model: their names, and inverse kinematics."""

from dataclasses import dataclass
from typing import Any, Final

import mujoco
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion

DAMPING: Final = 1e-4
STEPS: Final = 60
REACHED_M: Final = 2e-4


@dataclass(frozen=True)
class Limbs:
    """What of a twin's model belongs to arm and hand.

    Attributes:
        joints: names of the arm's joints, base to tool.
        home: their angles, rad, from which every place over the table is reached.
        torques: that their motors give at most, N m.
        hand: name of the gripper's body, z along the approach.
        tool: m along that axis from the body to the tool's frame.
        fingers: names of the two finger joints. Their sum is the opening in m.
    """

    joints: tuple[str, ...]
    home: tuple[float, ...]
    torques: tuple[float, ...]
    hand: str
    tool: float
    fingers: tuple[str, str]


class ToolReach:
    """Poses an arm by inverse kinematics: damped least squares from the angles that it has.

    Args:
        model, data: of the robot in a scene.
        limbs: names.

    Attributes:
        qpos, dof: where the arm's joints are in ``qpos`` and ``qvel``.
    """

    def __init__(self, model: Any, data: Any, limbs: Limbs) -> None:
        self._model, self._data = model, data
        self._hand, self._tool = data.body(limbs.hand), limbs.tool
        joints = [model.joint(name) for name in limbs.joints]
        self.qpos = [int(joint.qposadr[0]) for joint in joints]
        self.dof = [int(joint.dofadr[0]) for joint in joints]
        self._jacobian = np.zeros((6, model.nv))

    @property
    def tool_position(self) -> Array:
        """Position of the tool, ``(3,)`` m, base frame."""
        point: Array = self._hand.xpos + self._tool * self._hand.xmat[2::3]
        return point

    @property
    def angles(self) -> Array:
        """A copy of the arm's joint angles ``(joints,)``, rad."""
        angles: Array = self._data.qpos[self.qpos]
        return angles

    def home(self, angles: tuple[float, ...]) -> None:
        """Put the joints at these angles, rad. The next inverse kinematics starts from there."""
        self._data.qpos[self.qpos] = angles
        mujoco.mj_kinematics(self._model, self._data)

    def move(self, position: Array, quaternion: Array) -> None:
        """Pose the tool at ``(3,)`` m and ``(4,)`` xyzw, base frame.

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
            columns = self._jacobian[:, self.dof]
            self._data.qpos[self.qpos] += columns.T @ np.linalg.solve(columns @ columns.T + DAMPING * np.eye(6), off)
            mujoco.mj_kinematics(self._model, self._data)
        raise ArmError(f"the arm cannot put its tool at {np.round(position, 3).tolist()} m; it stays {off[:3]} m away")

    def _error(self, position: Array, wanted: Array) -> Array:
        turn = wanted @ self._hand.xmat.reshape(3, 3).T
        axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        return np.concatenate([position - self.tool_position, axis / 2])

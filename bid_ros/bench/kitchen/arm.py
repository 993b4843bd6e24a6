"""The kitchen's arm for scripted operators: which joints bring the hand where, by MuJoCo's model of it."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.kitchen.catalogue import ARM
from bid_ros.core.rotation import matrix_from_vector, vector_from_matrix

Array = NDArray[np.float64]

JOINTS: Final = 7
HAND: Final = "end_effector"  # the site between the fingers, 5 cm from their tips
# The hand points away from the robot, along the world's y axis, and its fingers close along x.
FORWARD: Final = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
DAMPING: Final = 1e-3  # of the least squares, m and rad together
ROUNDS: Final = 6  # of them a step
POSTURE: Final = 0.02  # how much of the way to the usual posture a round takes, where the hand does not mind
MARGIN: Final = 0.03  # rad, from the ends of the joints


def hand_turn(yaw: float, pitch: float, roll: float) -> Array:
    """Return the hand's rotation ``(3, 3)``.

    Args:
        yaw: rad about the vertical, from pointing forward to the left.
        pitch: rad by which the hand then points up.
        roll: rad about the way in which the hand then points.
    """
    about = [matrix_from_vector(np.asarray(v)) for v in ([0.0, 0.0, yaw], [0.0, -pitch, 0.0], [0.0, 0.0, roll])]
    return np.asarray(about[0] @ FORWARD @ about[1] @ about[2])


class KitchenArm:
    """Solves for joints, and says what else only the simulation knows.

    Args:
        physics: MuJoCo's model and data of the environment; only read.

    Attributes:
        usual: ``(7,)`` rad, the posture that is sought where the hand leaves a choice.
    """

    def __init__(self, physics: tuple[Any, Any]) -> None:
        import mujoco

        self._mujoco, (self._model, self._data) = mujoco, physics
        self._scratch = mujoco.MjData(self._model)
        self._hand = self.site_number(HAND)
        ends = self._model.jnt_range[:JOINTS]
        self._lowest, self._highest = ends[:, 0] + MARGIN, ends[:, 1] - MARGIN
        self._lowest[5] = MARGIN  # the environment holds this one at 0 and above
        self.usual = np.array(self._data.qpos[:JOINTS])
        self._stiffness = np.array(self._model.actuator_gainprm[:JOINTS, 0])
        self._lag = self._model.dof_damping[:JOINTS] / self._stiffness

    def site_number(self, name: str) -> int:
        """Return the number of a site of the model."""
        number = self._mujoco.mj_name2id(self._model, self._mujoco.mjtObj.mjOBJ_SITE, name)
        assert number >= 0, name
        return int(number)

    def site(self, name: str) -> Array:
        """Return where a site is now, ``(3,)`` m."""
        return np.array(self._data.site_xpos[self.site_number(name)])

    def pose(self, joints: Array) -> tuple[Array, Array]:
        """Return place ``(3,)`` m and rotation ``(3, 3)`` of the hand at joints ``(7,)`` rad."""
        self._scratch.qpos[:] = self._data.qpos
        self._scratch.qpos[:JOINTS] = joints
        self._mujoco.mj_kinematics(self._model, self._scratch)
        self._mujoco.mj_comPos(self._model, self._scratch)
        turn = np.array(self._scratch.site_xmat[self._hand]).reshape(3, 3)
        return np.array(self._scratch.site_xpos[self._hand]), turn

    def solve(self, joints: Array, place: Array, turn: Array) -> Array:
        """Return joints ``(7,)`` rad near ``joints`` that bring the hand nearer to a place and a rotation."""
        found = np.array(joints)
        for _ in range(ROUNDS):
            at, turned = self.pose(found)
            missing = np.concatenate([place - at, vector_from_matrix(turn @ turned.T)])
            jacobian = self._jacobian()
            inverse = jacobian.T @ np.linalg.inv(jacobian @ jacobian.T + DAMPING * np.eye(6))
            rest = (np.eye(JOINTS) - inverse @ jacobian) @ (self.usual - found)
            found = np.clip(found + inverse @ missing + POSTURE * rest, self._lowest, self._highest)
        return found

    def target(self, joints: Array, speed: Array) -> Array:
        """Return the targets ``(7,)`` rad at which the servos hold ``joints`` that move at ``speed``, rad/s.

        The servos are springs with dampers: gravity and speed are added as what they would fall short.
        """
        return np.asarray(joints + self._data.qfrc_bias[:JOINTS] / self._stiffness + self._lag * speed)

    def _jacobian(self) -> Array:
        moves, turns = np.zeros((3, self._model.nv)), np.zeros((3, self._model.nv))
        self._mujoco.mj_jacSite(self._model, self._scratch, moves, turns, self._hand)
        return np.concatenate([moves[:, :JOINTS], turns[:, :JOINTS]])


assert ARM == JOINTS + 2

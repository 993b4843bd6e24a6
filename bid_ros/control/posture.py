"""Joints that an arm takes where only its tool is commanded, predicted for many motions at once.

The steps are those of :meth:`bid_ros.control.chain.Chain.solve`: damped least squares, with a redundant joint drawn to
its rest. All rows of all motions are one array with the rows last, which is several times as fast for hundreds of them.

A pose is an array ``(4, 5, M)``: the three columns of its rotation, then its place; of each x, y, z, and x and y again.
So a cross product of vectors ``(..., 5, M)`` takes three operations.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.chain import DAMPING, LONGEST_STEP, JointFrame
from bid_ros.core.rotation import Array

FIRST_STEP: Final = 0.8  # rad of a joint in the first step of all rows
# Squares of m and rad before the last step, which leaves a tenth of them or less.
NEAR: Final = np.array([[3e-3**2], [1.5e-2**2]])
DAMPED: Final = DAMPING**2 * np.eye(6)
SETTLED_RAD: Final = 0.03  # of each joint in the last step
MOST_STEPS: Final = 14
CYCLE: Final = (0, 1, 2, 0, 1)  # axes of a vector of five
DRAWN_S: Final = 0.45  # an impedance of 5 Nm/rad on 1 kg m^2, critically damped, goes to rest like this


@dataclass(frozen=True, eq=False)
class PredictedJoints:
    """Joints along motions.

    Attributes:
        joints: ``(N, n, joints)`` rad.
        reached: ``(N, n)`` whether the tool gets to its pose.
        singular: ``(N, n)`` smallest singular value of the Jacobian there, m and rad alike, or a lower bound of it that
            is not below the limit asked for.
    """

    joints: Array
    reached: NDArray[np.bool_]
    singular: Array


class PosturePrediction:
    """Predicts the joints of an arm whose tool is commanded.

    Args:
        arm: its kinematics, and the posture that its controller draws redundant joints to.
    """

    def __init__(self, arm: ArmModel) -> None:
        base, *self._frames = (_moved(frame) for frame in arm.chain.frames)
        self._base = (base @ np.eye(4, 3)[:, CYCLE])[..., None]
        self._count, self._rest = arm.joints, np.array(arm.rest)

    def of(
        self, position: Array, rotation: Array, measured: ArrayLike, dt_s: float, singular: float = 0.0
    ) -> PredictedJoints:
        """Return the joints along motions of the tool.

        Args:
            position: ``(N, n, 3)`` m, base frame.
            rotation: ``(N, n, 3, 3)``, tool to base.
            measured: ``(joints,)`` rad, from where all motions begin.
            dt_s: s between two rows.
            singular: limit below which singular values must be exact.
        """
        shape = position.shape[:2]
        here = np.asarray(measured, dtype=np.float64)
        columns = np.concatenate([rotation, position[..., None]], axis=-1).reshape(-1, 3, 4)
        goal = np.take(columns.transpose(2, 1, 0), CYCLE, axis=1)
        joints, reached, inverse = self._solved(here[:, None], goal, self._drawn(here, shape, dt_s))
        values = self._singular(inverse, joints, singular)
        return PredictedJoints(joints.T.reshape(*shape, -1), reached.reshape(shape), values.reshape(shape))

    def _solved(self, start: Array, goal: Array, pull: Array) -> tuple[Array, NDArray[np.bool_], Array]:
        """Return joints ``(joints, M)``, which reach their pose ``(M,)``, and inverses of the last squares.

        First all rows take one step with the Jacobian of where the arm is, then one with their own, and one more with
        the same. Only rows that are still away then go on.
        """
        poses = self._poses(start)
        joints = start + self._step(*_squared(poses), _error(poses[-1], goal), pull - start, FIRST_STEP)
        poses = self._poses(joints)
        jacobian, inverse = _squared(poses)
        joints = joints + self._step(jacobian, inverse, _error(poses[-1], goal), pull - joints)
        pose = self._poses(joints)[-1]
        error = _error(pose, goal)
        change = self._step(jacobian, inverse, error, pull - joints)
        joints = joints + change
        reached = _settled(change, error, pose, goal)
        away = np.flatnonzero(~reached)
        for _ in range(MOST_STEPS):
            if not len(away):
                break
            ends = goal[..., away]
            poses = self._poses(joints[:, away])
            jacobian, inverse[away] = _squared(poses)
            error = _error(poses[-1], ends)
            change = self._step(jacobian, inverse[away], error, pull[:, away] - joints[:, away])
            joints[:, away] += change
            done = _settled(change, error, poses[-1], ends)
            reached[away] = done
            away = away[~done]
        return joints, reached, inverse

    def _drawn(self, here: Array, shape: tuple[int, ...], dt_s: float) -> Array:
        """Return the postures ``(joints, N n)`` that redundant joints are drawn to."""
        since = np.arange(shape[1]) * dt_s / DRAWN_S
        share = np.tile(1.0 - (1.0 + since) * np.exp(-since), shape[0])
        drawn: Array = here[:, None] + (self._rest - here)[:, None] * share
        return drawn

    def _poses(self, joints: Array) -> Array:
        """Return the pose of each joint and of the tool, ``(joints + 1, 4, 5, M)``, at joints ``(joints, M)``."""
        cosines, sines = np.cos(joints), np.sin(joints)
        signed = np.array([sines, -sines]).transpose(1, 0, 2)[:, :, None]
        poses = np.empty((self._count + 1, 4, 5, joints.shape[1]))
        poses[0] = self._base
        flat, across = poses.reshape(self._count + 1, 4, -1), poses[:-1, :2]  # columns x and y, which a joint turns
        for pose, then, pair, cosine, sine, frame in zip(
            flat[:-1], flat[1:], across, cosines, signed, self._frames, strict=True
        ):
            swapped = pair[::-1] * sine
            pair *= cosine
            pair += swapped
            np.matmul(frame, pose, out=then)
        return poses

    def _step(self, jacobian: Array, inverse: Array, error: Array, pull: Array, most: float = LONGEST_STEP) -> Array:
        """Return the change of the joints ``(joints, M)``, as a step of :meth:`Chain.solve`."""
        if self._count > 6:
            error = error - (jacobian * pull[:, None]).sum(axis=0)
        change: Array = (jacobian * (inverse @ error.T[..., None])[..., 0].T).sum(axis=1)
        if self._count > 6:
            change += pull
        longest: float = float(np.abs(change).max())
        if longest <= most:
            return change
        scaled: Array = change * np.minimum(1.0, most / np.maximum(np.abs(change).max(axis=0), 1e-12))
        return scaled

    def _singular(self, inverse: Array, joints: Array, limit: float) -> Array:
        """Return the smallest singular values ``(M,)``: a lower bound first, exact ones where it is below a limit."""
        # The trace of an inverse of squares is at least the largest of its eigenvalues.
        values: Array = 1.0 / np.sqrt(np.trace(inverse, axis1=1, axis2=2))
        low = ~(values >= limit + DAMPING)
        if low.any():
            jacobian = _jacobian(self._poses(joints[:, low]))
            values[low] = np.linalg.svd(jacobian.transpose(2, 1, 0), compute_uv=False)[:, -1]
        return values


def _moved(frame: JointFrame) -> Array:
    """Return the matrix ``(4, 4)`` that moves the columns of a pose, rotation and place, into a frame."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[3, :3] = frame.rotation.T, frame.position
    return matrix


def _cross(one: Array, other: Array) -> Array:
    """Return the cross products ``(..., 3, M)`` of vectors ``(..., 5, M)``."""
    product: Array = one[..., 1:4, :] * other[..., 2:5, :] - one[..., 2:5, :] * other[..., 1:4, :]
    return product


def _jacobian(poses: Array) -> Array:
    """Return the Jacobians ``(joints, 6, M)`` of the tool at poses ``(joints + 1, 4, 5, M)``."""
    axes, levers = poses[:-1, 2], poses[-1, 3] - poses[:-1, 3]
    return np.concatenate([_cross(axes, levers), axes[:, :3]], axis=1)


def _squared(poses: Array) -> tuple[Array, Array]:
    """Return the Jacobians ``(joints, 6, M)`` and the inverses ``(M, 6, 6)`` of their damped squares."""
    jacobian = _jacobian(poses)
    rows = jacobian.transpose(2, 1, 0)
    inverse = np.asarray(np.linalg.inv(rows @ np.swapaxes(rows, 1, 2) + DAMPED), dtype=np.float64)
    return jacobian, inverse


def _error(pose: Array, goal: Array) -> Array:
    """Return the motions ``(6, M)`` from poses to their goals, m and rad; a turn is that of a small angle."""
    return np.concatenate([goal[3, :3] - pose[3, :3], 0.5 * _cross(pose[:3], goal[:3]).sum(axis=0)])


def _settled(change: Array, error: Array, pose: Array, goal: Array) -> NDArray[np.bool_]:
    """Return which poses ``(M,)`` are near enough, and their last step short.

    A sine vanishes at half a turn too: there the trace is negative.
    """
    near = ((error * error).reshape(2, 3, -1).sum(axis=1) <= NEAR).all(axis=0)
    trace = np.einsum("ijm,ijm->m", pose[:3, :3], goal[:3, :3])
    return np.asarray(near & (trace >= 1.0) & (np.abs(change).max(axis=0) <= SETTLED_RAD))

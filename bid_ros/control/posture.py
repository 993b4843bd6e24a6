"""Joints that an arm takes where only its tool is commanded, predicted for many motions at once.

The steps are those of :meth:`bid_ros.control.chain.Chain.solve`: damped least squares, with a redundant joint drawn to
its rest. All rows of all motions are one array with the rows last, which is several times as fast for hundreds of them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.chain import DAMPING, LONGEST_STEP, JointFrame
from bid_ros.core.rotation import Array

FIRST_STEP: Final = 0.8  # rad of a joint in the first step of all rows
NEAR_M: Final = 3e-3  # before the last step, which leaves a tenth of it or less
NEAR_RAD: Final = 1.5e-2
SETTLED_RAD: Final = 0.03  # of each joint in the last step
MOST_STEPS: Final = 14
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
        self._frames = [_moved(frame) for frame in arm.chain.frames]
        self._count, self._chain, self._rest = arm.joints, arm.chain, np.array(arm.rest)

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
        goal = np.ascontiguousarray(position.reshape(-1, 3).T)
        turn = np.ascontiguousarray(rotation.reshape(-1, 3, 3).transpose(1, 2, 0))
        pull = self._drawn(here, shape, dt_s)
        joints, reached, factor = self._solved(here, goal, turn, pull)
        values = self._singular(factor, joints, singular)
        return PredictedJoints(joints.T.reshape(*shape, -1), reached.reshape(shape), values.reshape(shape))

    def _solved(self, here: Array, goal: Array, turn: Array, pull: Array) -> tuple[Array, NDArray[np.bool_], Array]:
        """Return joints ``(joints, M)``, which reach their pose ``(M,)``, and factors of the last Jacobians.

        First all rows take one step with the Jacobian of where the arm is, then one with their own, and one more with
        the same. Only rows that are still away then go on.
        """
        start = here[:, None]
        place, turned, jacobian = self._motion(start)
        joints = start + self._step(
            jacobian, _factor(jacobian), _error(place, turned, goal, turn), pull - start, FIRST_STEP
        )
        place, turned, jacobian = self._motion(joints)
        factor = _factor(jacobian)
        joints = joints + self._step(jacobian, factor, _error(place, turned, goal, turn), pull - joints)
        place, turned, _ = self._motion(joints, jacobian=False)
        error = _error(place, turned, goal, turn)
        change = self._step(jacobian, factor, error, pull - joints)
        joints = joints + change
        reached = _near(error, turned, turn) & (np.abs(change).max(axis=0) <= SETTLED_RAD)
        away = np.flatnonzero(~reached)
        for _ in range(MOST_STEPS):
            if not len(away):
                break
            ends, turns = goal[:, away], turn[..., away]
            place, turned, jacobian = self._motion(joints[:, away])
            error, factor[..., away] = _error(place, turned, ends, turns), _factor(jacobian)
            change = self._step(jacobian, factor[..., away], error, pull[:, away] - joints[:, away])
            joints[:, away] += change
            done = _near(error, turned, turns) & (np.abs(change).max(axis=0) <= SETTLED_RAD)
            reached[away] = done
            away = away[~done]
        return joints, reached, factor

    def _drawn(self, here: Array, shape: tuple[int, ...], dt_s: float) -> Array:
        """Return the postures ``(joints, N n)`` that redundant joints are drawn to."""
        since = np.arange(shape[1]) * dt_s / DRAWN_S
        share = np.tile(1.0 - (1.0 + since) * np.exp(-since), shape[0])
        drawn: Array = here[:, None] + (self._rest - here)[:, None] * share
        return drawn

    def _motion(self, joints: Array, jacobian: bool = True) -> tuple[Array, Array, Array]:
        """Return place ``(3, M)``, rotation ``(3, 3, M)`` and Jacobian ``(joints, 6, M)`` at joints ``(joints, M)``.

        Without ``jacobian`` the last of them says nothing.
        """
        count = joints.shape[1]
        cosines, sines = np.cos(joints), np.sin(joints)
        origins, axes = np.empty((2, self._count, 3, count))
        pose = np.zeros((3, 4, count))  # columns of the rotation, then the place
        pose[range(3), range(3)] = 1.0
        for number, frame in enumerate(self._frames):
            pose = np.matmul(frame, pose)
            if number < self._count:
                if jacobian:
                    origins[number], axes[number] = pose[:, 3], pose[:, 2]
                c, s, x, y = cosines[number], sines[number], pose[:, 0], pose[:, 1]
                pose[:, 0], pose[:, 1] = c * x + s * y, c * y - s * x
        place, rotation = pose[:, 3], pose[:, :3]
        if not jacobian:
            return place, rotation, axes
        found = np.empty((self._count, 6, count))
        found[:, 3:] = axes
        (a, b, c), (x, y, z) = np.swapaxes(axes, 0, 1), np.swapaxes(place - origins, 0, 1)
        found[:, 0], found[:, 1], found[:, 2] = b * z - c * y, c * x - a * z, a * y - b * x
        return place, rotation, found

    def _step(self, jacobian: Array, factor: Array, error: Array, pull: Array, most: float = LONGEST_STEP) -> Array:
        """Return the change of the joints ``(joints, M)``, as a step of :meth:`Chain.solve`."""
        if self._count > 6:
            error = error - (jacobian * pull[:, None]).sum(axis=0)
        change: Array = (jacobian * _solution(factor, error)).sum(axis=1)
        if self._count > 6:
            change += pull
        longest: float = float(np.abs(change).max())
        if longest <= most:
            return change
        scaled: Array = change * np.minimum(1.0, most / np.maximum(np.abs(change).max(axis=0), 1e-12))
        return scaled

    def _singular(self, factor: Array, joints: Array, limit: float) -> Array:
        """Return the smallest singular values ``(M,)``: a lower bound first, exact ones where it is below a limit."""
        # The Frobenius norm of an inverse is at least the largest of its singular values.
        inverse = _forward(factor, np.repeat(np.eye(6)[:, :, None], factor.shape[2], axis=2))
        values: Array = 1.0 / np.sqrt((inverse * inverse).sum(axis=(0, 1)))
        low = ~(values >= limit + DAMPING)
        if low.any():
            values[low] = np.linalg.svd(self._chain.jacobian(joints[:, low].T), compute_uv=False)[:, -1]
        return values


def _moved(frame: JointFrame) -> Array:
    """Return the matrix ``(4, 4)`` that moves the columns of a pose, rotation and place, into a frame."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[3, :3] = frame.rotation.T, frame.position
    return matrix


def _error(place: Array, turned: Array, goal: Array, turn: Array) -> Array:
    """Return the motions ``(6, M)`` from poses to their goals, m and rad; a turn is that of a small angle."""
    (a, b, c), (x, y, z) = turned, turn
    error = np.empty((6, goal.shape[1]))
    error[:3] = goal - place
    for row, cross in enumerate((b * z - c * y, c * x - a * z, a * y - b * x)):
        error[3 + row] = 0.5 * cross.sum(axis=0)
    return error


def _near(error: Array, turned: Array, turn: Array) -> NDArray[np.bool_]:
    """Return which poses ``(M,)`` are near enough. A sine vanishes at half a turn too: there the trace is negative."""
    way, angle = (error[:3] ** 2).sum(axis=0), (error[3:] ** 2).sum(axis=0)
    trace = np.einsum("ijm,ijm->m", turned, turn)
    return np.asarray((way <= NEAR_M**2) & (angle <= NEAR_RAD**2) & (trace >= 1.0))


def _factor(jacobian: Array) -> Array:
    """Return the Cholesky factors ``(6, 6, M)``, lower, of the damped squares of Jacobians ``(joints, 6, M)``."""
    square: Array = np.einsum("jam,jbm->abm", jacobian, jacobian)
    square[range(6), range(6)] += DAMPING**2
    factor: Array = np.zeros_like(square)
    for column in range(6):
        done = factor[:, :column]
        rest = square[column:, column] - (done[column:] * done[column]).sum(axis=1)
        factor[column:, column] = rest / np.sqrt(rest[0])
    return factor


def _forward(factor: Array, values: Array) -> Array:
    """Return the solution of ``factor`` ``(6, 6, M)``, lower, times it = ``values`` ``(6, ..., M)``."""
    found = np.empty_like(values)
    spread = factor if values.ndim == 2 else factor[:, :, None]
    for row in range(6):
        found[row] = (values[row] - (spread[row, :row] * found[:row]).sum(axis=0)) / factor[row, row]
    return found


def _solution(factor: Array, values: Array) -> Array:
    """Return the solution ``(6, M)`` of the square of a factor times it = ``values`` ``(6, M)``."""
    half, found = _forward(factor, values), np.empty_like(values)
    for row in reversed(range(6)):
        known = (factor[row + 1 :, row] * found[row + 1 :]).sum(axis=0)
        found[row] = (half[row] - known) / factor[row, row]
    return found

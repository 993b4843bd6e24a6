"""Rotations as quaternions (x, y, z, w), rotation vectors and the continuous six-number form.

``rotation_6d`` is the first two columns of the rotation matrix, column after column (Zhou et al., "On the
Continuity of Rotation Representations in Neural Networks", CVPR 2019). It is continuous: a network can regress it,
and the average of two neighbours is close to a rotation.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# A tool that points straight down, in a frame whose z axis points up: half a turn about x.
DOWN_QUATERNION: Final = (1.0, 0.0, 0.0, 0.0)
DOWN_6D: Final = (1.0, 0.0, 0.0, 0.0, -1.0, 0.0)


def matrix_from_6d(six: ArrayLike) -> Array:
    """Return the rotation matrix ``(..., 3, 3)`` nearest in the Gram-Schmidt sense to ``six`` ``(..., 6)``."""
    values = np.asarray(six, dtype=np.float64)
    first = values[..., :3] / np.maximum(np.linalg.norm(values[..., :3], axis=-1, keepdims=True), 1e-9)
    second = values[..., 3:] - np.sum(first * values[..., 3:], axis=-1, keepdims=True) * first
    second = second / np.maximum(np.linalg.norm(second, axis=-1, keepdims=True), 1e-9)
    return np.stack([first, second, np.cross(first, second)], axis=-1)


def matrix_to_6d(matrix: ArrayLike) -> Array:
    """Return the first two columns ``(..., 6)`` of rotation matrices ``(..., 3, 3)``."""
    values = np.asarray(matrix, dtype=np.float64)
    return np.concatenate([values[..., :, 0], values[..., :, 1]], axis=-1)


def matrix_from_quaternion(quaternion: ArrayLike) -> Array:
    """Return the rotation matrix ``(3, 3)`` of a quaternion ``(4,)`` xyzw, which need not be normalised."""
    x, y, z, w = np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_from_matrix(matrix: ArrayLike) -> Array:
    """Return the unit quaternions ``(..., 4)`` xyzw of rotation matrices ``(..., 3, 3)``, with w >= 0."""
    m = np.moveaxis(np.asarray(matrix, dtype=np.float64), (-2, -1), (0, 1))
    # Shepperd's method: dividing by the largest component avoids cancellation near half turns. A row
    # is four times the quaternion times one of its components.
    xy, xz, yz = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    xw, yw, zw = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    products = np.array(
        [
            [1 + m[0, 0] - m[1, 1] - m[2, 2], xy, xz, xw],
            [xy, 1 - m[0, 0] + m[1, 1] - m[2, 2], yz, yw],
            [xz, yz, 1 - m[0, 0] - m[1, 1] + m[2, 2], zw],
            [xw, yw, zw, 1 + m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    largest = np.argmax(np.diagonal(products), axis=-1)
    q = np.take_along_axis(np.moveaxis(products, (0, 1), (-2, -1)), largest[..., None, None], -2)[..., 0, :]
    unit: Array = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(unit[..., 3:] >= 0, unit, -unit)


def matrix_from_vector(vector: ArrayLike) -> Array:
    """Return the rotation matrix of a rotation vector ``(3,)`` in rad (Rodrigues' formula)."""
    v = np.asarray(vector, dtype=np.float64)
    angle = float(np.linalg.norm(v))
    if angle < 1e-12:
        return np.eye(3) + _skew(v)
    axis = _skew(v / angle)
    matrix: Array = np.eye(3) + np.sin(angle) * axis + (1 - np.cos(angle)) * (axis @ axis)
    return matrix


def vector_from_matrix(matrix: ArrayLike) -> Array:
    """Return the rotation vector ``(3,)`` in rad, of length 0 to pi, of a rotation matrix ``(3, 3)``."""
    x, y, z, w = quaternion_from_matrix(matrix)
    axis = np.array([x, y, z])
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return 2.0 * axis
    turn: Array = axis / sine * (2.0 * np.arctan2(sine, w))
    return turn


def _skew(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

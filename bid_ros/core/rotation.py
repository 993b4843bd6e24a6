"""Rotations as quaternions (x, y, z, w), rotation vectors and the continuous six-number form, many at once.

SciPy's ``Rotation`` has no six-number form. It raises for a NaN, where a chunk that holds one is to be refused by the
envelope. Its import takes 38 MB of every process that turns anything, and a matrix takes it twice as long. So what runs
live uses this module.

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
    matrix = np.empty((*values.shape[:-1], 3, 3))
    first, second, third = matrix[..., 0], matrix[..., 1], matrix[..., 2]
    first[...] = values[..., :3] / np.maximum(_length(values[..., :3]), 1e-9)
    second[...] = values[..., 3:] - np.sum(first * values[..., 3:], axis=-1, keepdims=True) * first
    second /= np.maximum(_length(second), 1e-9)
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):  # faster than np.cross
        third[..., i] = first[..., j] * second[..., k] - first[..., k] * second[..., j]
    return matrix


def matrix_to_6d(matrix: ArrayLike) -> Array:
    """Return the first two columns ``(..., 6)`` of rotation matrices ``(..., 3, 3)``."""
    values = np.asarray(matrix, dtype=np.float64)
    return np.concatenate([values[..., :, 0], values[..., :, 1]], axis=-1)


def matrix_from_quaternion(quaternion: ArrayLike) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of quaternions ``(..., 4)`` xyzw, which need not be normalised."""
    values = np.asarray(quaternion, dtype=np.float64)
    x, y, z, w = (values / _length(values)).T
    rows = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.swapaxes(rows.T, -1, -2)


def quaternion_from_matrix(matrix: ArrayLike) -> Array:
    """Return the unit quaternions ``(..., 4)`` xyzw of rotation matrices ``(..., 3, 3)``, with w >= 0."""
    m = np.asarray(matrix, dtype=np.float64).T  # transposes each matrix too: m[column, row]
    # Shepperd's method: dividing by the largest component avoids cancellation near half turns. A row
    # is four times the quaternion times one of its components.
    xy, xz, yz = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    xw, yw, zw = m[1, 2] - m[2, 1], m[2, 0] - m[0, 2], m[0, 1] - m[1, 0]
    ww = 1 + m[0, 0] + m[1, 1] + m[2, 2]
    if (ww > 2.0).all():  # no turn is longer than a quarter, so w is the largest of all
        turns = np.ascontiguousarray(np.array([xw, yw, zw, ww]).T)  # sums of rows keep their order
        return np.asarray(turns / _length(turns))
    products = np.array(
        [
            [1 + m[0, 0] - m[1, 1] - m[2, 2], xy, xz, xw],
            [xy, 1 - m[0, 0] + m[1, 1] - m[2, 2], yz, yw],
            [xz, yz, 1 - m[0, 0] - m[1, 1] + m[2, 2], zw],
            [xw, yw, zw, ww],
        ]
    ).T
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(products, largest[..., None, None], -2)[..., 0, :]
    unit: Array = q / _length(q)
    return np.where(unit[..., 3:] >= 0, unit, -unit)


def matrix_from_vector(vector: ArrayLike) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of rotation vectors ``(..., 3)`` in rad (Rodrigues' formula)."""
    values = np.asarray(vector, dtype=np.float64)
    angle = _length(values)
    x, y, z = (values / np.maximum(angle, 1e-12)).T
    none = np.zeros_like(x)
    across = np.swapaxes(np.array([[none, -z, y], [z, none, -x], [-y, x, none]]).T, -1, -2)
    turn = angle[..., None]
    matrix: Array = np.eye(3) + np.sin(turn) * across + (1 - np.cos(turn)) * (across @ across)
    return matrix


def vector_from_matrix(matrix: ArrayLike) -> Array:
    """Return the rotation vectors ``(..., 3)`` in rad, of length 0 to pi, of rotation matrices ``(..., 3, 3)``."""
    quaternion = quaternion_from_matrix(matrix)
    axis, sine = quaternion[..., :3], _length(quaternion[..., :3])
    turn = axis / np.maximum(sine, 1e-12) * (2.0 * np.arctan2(sine, quaternion[..., 3:]))
    return np.where(sine < 1e-12, 2.0 * axis, turn)


def _length(vectors: Array) -> Array:
    """Return the lengths ``(..., 1)`` of vectors ``(..., n)``."""
    length: Array = np.sqrt(np.add.reduce(vectors * vectors, axis=-1, keepdims=True))
    return length

"""The forms in which networks hold a rotation, many at once.

Sources: Zhou et al., "On the Continuity of Rotation Representations in Neural Networks", CVPR 2019, Eq. 15 (six
numbers); Diebel, "Representing Attitude: Euler Angles, Unit Quaternions, and Rotation Vectors", 2006 (the others).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.rotation import Array, matrix_to_6d, quaternion_from_matrix

SMALLEST: Final = 1e-12  # a quaternion shorter than this is no rotation, and counts as none at all
AXES: Final = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True)
class RotationForm:
    """A form of rotations.

    Attributes:
        matrix: from columns ``(..., S)`` to rotation matrices ``(..., 3, 3)``.
        columns: the way back.
    """

    matrix: Callable[[Array], Array]
    columns: Callable[[Array], Array]


def rotation_form(form: str, order: str = "", degrees: bool = False, positive: str = "w") -> RotationForm:
    """Return a form of :data:`bid_ros.policy.spaces.config.ROTATIONS`, the fields as in ``Part``."""
    unit, sign = np.pi / 180 if degrees else 1.0, "xyzw".index(positive)
    forms = {
        "rotation_6d": RotationForm(from_6d, matrix_to_6d),
        "rotation_6d_rows": RotationForm(
            lambda rows: _transposed(from_6d(rows)), lambda matrix: matrix_to_6d(_transposed(matrix))
        ),
        "matrix": RotationForm(_from_nine, lambda matrix: matrix.reshape(*matrix.shape[:-2], 9)),
        "quaternion_xyzw": RotationForm(from_quaternion, lambda matrix: _to_quaternion(matrix, sign)),
        "quaternion_wxyz": RotationForm(
            lambda columns: from_quaternion(columns[..., [1, 2, 3, 0]]),
            lambda matrix: _to_quaternion(matrix, sign)[..., [3, 0, 1, 2]],
        ),
        "rotation_vector": RotationForm(
            lambda columns: from_vector(columns * unit), lambda matrix: to_vector(matrix) / unit
        ),
        "euler": RotationForm(
            lambda columns: from_euler(columns * unit, order), lambda matrix: to_euler(matrix, order) / unit
        ),
    }
    return forms[form]


def from_6d(six: Array) -> Array:
    """Return what :func:`bid_ros.core.rotation.matrix_from_6d` does, but for rounding, and faster for many at once."""
    matrix = np.empty((*six.shape[:-1], 3, 3))
    first, second, third = matrix[..., 0], matrix[..., 1], matrix[..., 2]
    first[...] = six[..., :3] / _length(six[..., :3])
    second[...] = six[..., 3:] - np.einsum("...i,...i->...", first, six[..., 3:])[..., None] * first
    second /= _length(second)
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        third[..., i] = first[..., j] * second[..., k] - first[..., k] * second[..., j]
    return matrix


def _length(vectors: Array) -> Array:
    length: Array = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    return np.maximum(length, 1e-9)


def from_quaternion(quaternion: Array) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of quaternions ``(..., 4)`` xyzw of any length but 0."""
    length = np.linalg.norm(quaternion, axis=-1, keepdims=True)
    x, y, z, w = np.moveaxis(quaternion / np.maximum(length, SMALLEST), -1, 0)
    matrix = np.empty((*quaternion.shape[:-1], 3, 3))
    matrix[..., 0, 0] = 1 - 2 * (y * y + z * z)
    matrix[..., 0, 1] = 2 * (x * y - z * w)
    matrix[..., 0, 2] = 2 * (x * z + y * w)
    matrix[..., 1, 0] = 2 * (x * y + z * w)
    matrix[..., 1, 1] = 1 - 2 * (x * x + z * z)
    matrix[..., 1, 2] = 2 * (y * z - x * w)
    matrix[..., 2, 0] = 2 * (x * z - y * w)
    matrix[..., 2, 1] = 2 * (y * z + x * w)
    matrix[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return matrix


def from_vector(vector: Array) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of rotation vectors ``(..., 3)`` in rad."""
    half = np.linalg.norm(vector, axis=-1, keepdims=True) / 2
    # sin(half) / (2 half), which is 1/2 where the angle is 0
    return from_quaternion(np.concatenate([vector * (np.sinc(half / np.pi) / 2), np.cos(half)], axis=-1))


def to_vector(matrix: Array) -> Array:
    """Return the rotation vectors ``(..., 3)`` in rad, of length 0 to pi, of rotation matrices ``(..., 3, 3)``."""
    quaternion = quaternion_from_matrix(matrix)
    axis, sine = quaternion[..., :3], np.linalg.norm(quaternion[..., :3], axis=-1, keepdims=True)
    turn = np.where(sine < SMALLEST, 2.0, 2 * np.arctan2(sine, quaternion[..., 3:]) / np.maximum(sine, SMALLEST))
    vector: Array = axis * turn
    return vector


def from_euler(angles: Array, order: str) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of Euler angles ``(..., 3)`` in rad, ``order`` as in ``Part``."""
    turns = [_about(AXES[axis], angles[..., column]) for column, axis in enumerate(order.lower())]
    first, second, third = turns if order.isupper() else turns[::-1]
    matrix: Array = first @ second @ third
    return matrix


def to_euler(matrix: Array, order: str) -> Array:
    """Return Euler angles ``(..., 3)`` in rad of rotation matrices ``(..., 3, 3)``; the second is within half a turn.

    The third angle is that of what the first leaves. So the three give the rotation back even where the second leaves
    only the sum of the others (gimbal lock).
    """
    own, turning = order.lower(), order.isupper()
    # About fixed axes in one order is about turning axes in the opposite order.
    i, j, k = (AXES[axis] for axis in (own if turning else own[::-1]))
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    first = np.arctan2(-sign * matrix[..., j, k], matrix[..., k, k])
    second = np.arctan2(sign * matrix[..., i, k], np.hypot(matrix[..., j, k], matrix[..., k, k]))
    cosine, sine = np.cos(first), sign * np.sin(first)
    left_i, left_j = (cosine * matrix[..., j, column] + sine * matrix[..., k, column] for column in (i, j))
    third = np.arctan2(sign * left_i, left_j)
    angles = np.stack([first, second, third], axis=-1)
    return angles if turning else angles[..., ::-1]


def _about(axis: int, angle: Array) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` about one axis."""
    cosine, sine = np.cos(angle), np.sin(angle)
    matrix = np.zeros((*angle.shape, 3, 3))
    second, third = (axis + 1) % 3, (axis + 2) % 3
    matrix[..., axis, axis] = 1.0
    matrix[..., second, second] = matrix[..., third, third] = cosine
    matrix[..., second, third], matrix[..., third, second] = -sine, sine
    return matrix


def _from_nine(columns: Array) -> Array:
    """Return the rotation matrices nearest to nine numbers, by the columns of the matrix as :func:`from_6d`."""
    return from_6d(matrix_to_6d(columns.reshape(*columns.shape[:-1], 3, 3)))


def _to_quaternion(matrix: Array, positive: int) -> Array:
    """Return quaternions ``(..., 4)`` xyzw of which one component is not negative."""
    found = quaternion_from_matrix(matrix)
    return np.where(found[..., positive, None] < 0, -found, found)


def _transposed(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)

"""The forms in which networks hold a rotation, many at once.

Sources: Zhou et al., "On the Continuity of Rotation Representations in Neural Networks", CVPR 2019, Eq. 15 (six
numbers); Diebel, "Representing Attitude: Euler Angles, Unit Quaternions, and Rotation Vectors", 2006 (the others).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.rotation import (
    Array,
    matrix_from_6d,
    matrix_from_quaternion,
    matrix_from_vector,
    matrix_to_6d,
    quaternion_from_matrix,
    vector_from_matrix,
)

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
        "rotation_6d": RotationForm(matrix_from_6d, matrix_to_6d),
        "rotation_6d_rows": RotationForm(
            lambda rows: _transposed(matrix_from_6d(rows)), lambda matrix: matrix_to_6d(_transposed(matrix))
        ),
        "matrix": RotationForm(_from_nine, lambda matrix: matrix.reshape(*matrix.shape[:-2], 9)),
        "quaternion_xyzw": RotationForm(from_quaternion, lambda matrix: _to_quaternion(matrix, sign)),
        "quaternion_wxyz": RotationForm(
            lambda columns: from_quaternion(columns[..., [1, 2, 3, 0]]),
            lambda matrix: _to_quaternion(matrix, sign)[..., [3, 0, 1, 2]],
        ),
        "rotation_vector": RotationForm(
            lambda columns: matrix_from_vector(columns * unit), lambda matrix: vector_from_matrix(matrix) / unit
        ),
        "euler": RotationForm(
            lambda columns: from_euler(columns * unit, order), lambda matrix: to_euler(matrix, order) / unit
        ),
    }
    return forms[form]


def from_quaternion(quaternion: Array) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of quaternions ``(..., 4)`` xyzw; one of length 0 turns nothing."""
    none = np.linalg.norm(quaternion, axis=-1, keepdims=True) < SMALLEST
    return matrix_from_quaternion(np.where(none, [0.0, 0.0, 0.0, 1.0], quaternion))


def from_euler(angles: Array, order: str) -> Array:
    """Return the rotation matrices ``(..., 3, 3)`` of Euler angles ``(..., 3)`` in rad, ``order`` as in ``Part``."""
    turns = [
        matrix_from_vector(angles[..., column, None] * np.eye(3)[AXES[axis]])
        for column, axis in enumerate(order.lower())
    ]
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


def _from_nine(columns: Array) -> Array:
    """Return the rotation matrices nearest to nine numbers, by the columns of the matrix as :func:`matrix_from_6d`."""
    return matrix_from_6d(matrix_to_6d(columns.reshape(*columns.shape[:-1], 3, 3)))


def _to_quaternion(matrix: Array, positive: int) -> Array:
    """Return quaternions ``(..., 4)`` xyzw of which one component is not negative."""
    found = quaternion_from_matrix(matrix)
    return np.where(found[..., positive, None] < 0, -found, found)


def _transposed(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)

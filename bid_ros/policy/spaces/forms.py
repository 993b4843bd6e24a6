"""The forms in which networks hold numbers and rotations, which of them fit which feature, and where rows count from.

Sources: Zhou et al., "On the Continuity of Rotation Representations in Neural Networks", CVPR 2019, Eq. 15 (six
numbers); Diebel, "Representing Attitude: Euler Angles, Unit Quaternions, and Rotation Vectors", 2006 (the others).

Rows count from the newest observation, or from the row before: a row up to the current one was predicted from what is
observed at it, so it counts from that; a later row counts from the row before. ``trail`` holds what is observed:
``(c + 1, ...)`` values at the rows up to the current one, ``c``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import BundleError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import (
    Array,
    matrix_from_6d,
    matrix_from_quaternion,
    matrix_from_vector,
    matrix_to_6d,
    quaternion_from_matrix,
    vector_from_matrix,
)
from bid_ros.core.units import conversion
from bid_ros.policy.spaces.config import OPENINGS, ROTATIONS, Form, Part

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


@dataclass(frozen=True)
class ValueForm:
    """A form of numbers.

    Attributes:
        task: from columns ``(..., S)`` to values ``(..., S)`` in task units.
        network: the way back.
        linear: whether both ways are linear, so that each undoes the other everywhere.
    """

    task: Callable[[Array], Array]
    network: Callable[[Array], Array]
    linear: bool = True


def chosen_form(part: Part, feature: Feature) -> Form:
    """Return the form of a part, by default that of its feature.

    Raises:
        BundleError: the form does not fit the kind of the feature.
    """
    kind = feature.kind
    if kind == "rotation_6d":
        valid: tuple[str, ...] = tuple(ROTATIONS)
    else:
        valid = ("values", *OPENINGS) if kind == "gripper" else ("values",)
    form = part.form or ("rotation_6d" if kind == "rotation_6d" else "values")
    if form not in valid:
        raise BundleError(f"'{feature.name}', a {kind}, has form '{form}'; valid are {', '.join(valid)}")
    if form in OPENINGS and part.reference != "absolute":
        raise BundleError(f"'{feature.name}' has form '{form}' and reference '{part.reference}'; valid is absolute")
    if part.reference == "velocity" and form not in ("values", "rotation_vector"):
        raise BundleError(
            f"'{feature.name}' has form '{form}' and reference 'velocity'; valid are values and rotation_vector"
        )
    if form not in ROTATIONS and part.axes == "tool" and kind != "position":
        raise BundleError(f"'{feature.name}', a {kind}, has axes 'tool'; valid are those of a position or rotation")
    return form


def columns_of(part: Part, feature: Feature) -> int:
    """Return how many columns a part takes."""
    return ROTATIONS.get(chosen_form(part, feature), feature.size)


def value_form(part: Part, feature: Feature, limits: Limits) -> ValueForm:
    """Return the form of a part that is no rotation.

    Raises:
        BundleError: scale or offset have another length than the feature.
    """
    form = chosen_form(part, feature)
    if form in OPENINGS:
        return _opening(form, part, limits)
    scale, offset = (_broad(name, getattr(part, name), feature) for name in ("scale", "offset"))
    if part.unit:
        try:
            factor, shift = conversion(part.unit, feature.kind, feature.name, limits)
        except TaskError as error:
            raise BundleError(f"space: {error}") from error
        scale, offset = scale * factor, offset + (shift if part.reference == "absolute" else 0.0)
    return ValueForm(lambda columns: columns * scale + offset, lambda values: (values - offset) / scale)


def _opening(form: Form, part: Part, limits: Limits) -> ValueForm:
    low, high = limits.gripper_min, limits.gripper_max
    slope = (high - low) / (part.open - part.closed)

    def width(columns: Array) -> Array:
        return low + (columns - part.closed) * slope

    def column(values: Array) -> Array:
        return part.closed + (values - low) / slope

    if form == "fraction":
        return ValueForm(width, column)
    middle = (low + high) / 2

    def switched_width(columns: Array) -> Array:
        # NaN stays NaN: a comparison would make it a width.
        ends = np.where(width(columns) > middle, high, low)
        return np.where(np.isfinite(columns), ends, np.nan)

    return ValueForm(
        switched_width, lambda values: np.where(values > middle, part.open, part.closed).astype(np.float64), False
    )


def _broad(name: str, value: float | tuple[float, ...], feature: Feature) -> Array:
    numbers = np.atleast_1d(np.array(value, dtype=np.float64))
    if numbers.size not in (1, feature.size):
        raise BundleError(
            f"{name} of '{feature.name}' has {numbers.size} numbers; valid are 1 and {feature.size}, one for each value"
        )
    return numbers


def accumulated(steps: Array, trail: Array) -> Array:
    """Return rows ``(N, H, S)`` of their differences to what they count from."""
    known = len(trail)
    rows = np.empty_like(steps)
    rows[:, :known] = trail + steps[:, :known]
    rows[:, known:] = rows[:, known - 1, None] + np.cumsum(steps[:, known:], axis=1)
    return rows


def origins(rows: Array, trail: Array) -> Array:
    """Return what rows ``(N, H, ...)`` count from: ``(N, H, ...)``, where ``...`` is ``(S,)`` or ``(3, 3)``."""
    known = len(trail)
    observed = np.broadcast_to(trail, (len(rows), *trail.shape))
    return np.concatenate([observed, rows[:, known - 1 : -1]], axis=1)


def turned(turns: Array, trail: Array, tool: bool) -> Array:
    """Return rotations ``(N, H, 3, 3)`` of their turns from what they count from, about base or tool axes."""
    known = len(trail)
    rows = np.empty_like(turns)
    rows[:, :known] = combined(turns[:, :known], trail, tool)
    for row in range(known, turns.shape[1]):
        rows[:, row] = combined(turns[:, row], rows[:, row - 1], tool)
    return rows


def combined(turn: Array, origin: Array, tool: bool) -> Array:
    """Return the rotation ``(..., 3, 3)`` that a turn about base or tool axes makes of another one."""
    return origin @ turn if tool else turn @ origin


def between(rotation: Array, origin: Array, tool: bool) -> Array:
    """Return the turn ``(..., 3, 3)`` about base or tool axes from ``origin`` to ``rotation``."""
    back = np.swapaxes(origin, -1, -2)
    return back @ rotation if tool else rotation @ back


def along(axes: Array, vectors: Array) -> Array:
    """Return vectors ``(..., 3)`` in the base frame of those along axes ``(..., 3, 3)``."""
    found: Array = np.einsum("...ij,...j->...i", axes, vectors)
    return found


def against(axes: Array, vectors: Array) -> Array:
    """Return vectors ``(..., 3)`` along axes ``(..., 3, 3)`` of those in the base frame."""
    found: Array = np.einsum("...ji,...j->...i", axes, vectors)
    return found

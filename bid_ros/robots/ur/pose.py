"""Poses as UR sends them, x y z in m and a rotation vector in rad, in plain floats.

A controller cycle of 2 ms leaves some tens of microseconds for this, and a NumPy call on six numbers costs as much as
the arithmetic of a whole function here. Rotations are nine floats, row after row.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers: TypeAlias = Sequence[float] | Array
Rotation: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]
Vector: TypeAlias = tuple[float, float, float]

_TINY = 1e-12


def floats(values: Numbers) -> list[float]:
    """Return six (or any number of) values as Python floats, which are several times faster than NumPy's."""
    return values.tolist() if isinstance(values, np.ndarray) else [float(value) for value in values]


def rotation_of(x: float, y: float, z: float) -> Rotation:
    """Return the rotation of a rotation vector in rad (Rodrigues' formula)."""
    angle = math.sqrt(x * x + y * y + z * z)
    if angle < _TINY:
        return (1.0, -z, y, z, 1.0, -x, -y, x, 1.0)
    x, y, z = x / angle, y / angle, z / angle
    cosine, sine = math.cos(angle), math.sin(angle)
    rest = 1.0 - cosine
    xy, xz, yz = x * y * rest, x * z * rest, y * z * rest
    xs, ys, zs = x * sine, y * sine, z * sine
    return (
        cosine + x * x * rest,
        xy - zs,
        xz + ys,
        xy + zs,
        cosine + y * y * rest,
        yz - xs,
        xz - ys,
        yz + xs,
        cosine + z * z * rest,
    )


def vector_of(rotation: Rotation) -> Vector:
    """Return the rotation vector, of length 0 to pi rad, of a rotation.

    By way of the quaternion with its largest component found first (Shepperd, 1978), so nothing cancels near half
    turns.
    """
    a, b, c, d, e, f, g, h, i = rotation
    trace = a + e + i
    if trace >= a and trace >= e and trace >= i:
        w, x, y, z = 1 + trace, h - f, c - g, d - b
    elif a >= e and a >= i:
        w, x, y, z = h - f, 1 + a - e - i, b + d, c + g
    elif e >= i:
        w, x, y, z = c - g, b + d, 1 - a + e - i, f + h
    else:
        w, x, y, z = d - b, c + g, f + h, 1 - a - e + i
    if w < 0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 / w if sine < _TINY * w else 2.0 * math.atan2(sine, w) / sine
    return (x * scale, y * scale, z * scale)


def product(p: Rotation, q: Rotation) -> Rotation:
    """Return the rotation ``p q``: first q, then p."""
    r, s, t, u, v, w, x, y, z = q
    return transpose((*turned(p, r, u, x), *turned(p, s, v, y), *turned(p, t, w, z)))


def transpose(rotation: Rotation) -> Rotation:
    """Return the inverse rotation."""
    a, b, c, d, e, f, g, h, i = rotation
    return (a, d, g, b, e, h, c, f, i)


def turned(rotation: Rotation, x: float, y: float, z: float) -> Vector:
    """Return the vector x y z turned by a rotation."""
    a, b, c, d, e, f, g, h, i = rotation
    return (a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z)

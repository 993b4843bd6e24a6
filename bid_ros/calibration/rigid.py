"""Rigid motions as 4 x 4 matrices, many at once. ``a_b`` takes points of frame b to frame a."""

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.rotation import Array, matrix_from_quaternion, matrix_from_vector, vector_from_matrix


def rigid(rotation: ArrayLike, position: ArrayLike) -> Array:
    """Return the motions ``(..., 4, 4)`` of rotations ``(..., 3, 3)`` and positions ``(..., 3)`` m."""
    turn, place = np.asarray(rotation, dtype=np.float64), np.asarray(position, dtype=np.float64)
    motion = np.zeros((*turn.shape[:-2], 4, 4))
    motion[..., :3, :3], motion[..., :3, 3], motion[..., 3, 3] = turn, place, 1.0
    return motion


def from_pose(position: ArrayLike, quaternion: ArrayLike) -> Array:
    """Return the motions ``(..., 4, 4)`` of poses: positions ``(..., 3)`` m and quaternions ``(..., 4)`` xyzw."""
    return rigid(matrix_from_quaternion(quaternion), position)


def from_vector(six: Array) -> Array:
    """Return the motions ``(..., 4, 4)`` of ``(..., 6)``: rotation vector in rad, then position in m."""
    return rigid(matrix_from_vector(six[..., :3]), six[..., 3:])


def to_vector(motion: Array) -> Array:
    """Return ``(..., 6)``, as :func:`from_vector` takes it."""
    return np.concatenate([vector_from_matrix(motion[..., :3, :3]), motion[..., :3, 3]], axis=-1)


def inverse(motion: Array) -> Array:
    """Return the motions ``(..., 4, 4)`` back."""
    back = np.swapaxes(motion[..., :3, :3], -1, -2)
    return rigid(back, -(back @ motion[..., :3, 3, None])[..., 0])


def apart(first: Array, second: Array) -> tuple[float, float]:
    """Return how far two motions ``(4, 4)`` are apart: m, and degrees."""
    angle = np.linalg.norm(vector_from_matrix(first[:3, :3].T @ second[:3, :3]))
    return float(np.linalg.norm(first[:3, 3] - second[:3, 3])), float(np.degrees(angle))

"""Poses of messages as numbers.

Messages are read by their field names only, so rclpy's messages and those decoded from a bag both work.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pose_numbers(pose: Any) -> list[float]:
    """Return position in m and quaternion xyzw of a pose message, seven numbers."""
    place, turn = pose.position, pose.orientation
    return [place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w]


def pose_arrays(pose: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return position (3,) in m and quaternion (4,) xyzw of a pose message."""
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z], dtype=np.float64), np.array([q.x, q.y, q.z, q.w], dtype=np.float64)

"""A straight line of a UR's tool as joint angles, for tests of what the arm carries."""

import math
from collections.abc import Iterator

import numpy as np

from bid_ros.robots.ur.kinematics import ToolKinematics
from bid_ros.robots.ur.twin.moves import TrapezoidProfile

ACCELERATION = 3.0  # m/s^2


def straight_move(
    tool: ToolKinematics, q: np.ndarray, by: list[float], speed: float, dt: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield joint angles and speeds ``(6,)`` that move the tool from rest at ``q`` to rest ``by`` m further.

    Args:
        tool: kinematics of the arm and its tool.
        q: ``(6,)`` rad.
        by: ``(3,)`` m, base frame; the tool does not turn.
        speed: most of the tool, m/s.
        dt: length of a cycle, s. The last cycle is at rest.
    """
    start, way = tool.forward(q), np.array([*by, 0.0, 0.0, 0.0])
    profile = TrapezoidProfile(float(np.linalg.norm(way)), speed, ACCELERATION)
    for cycle in range(1, math.ceil(profile.duration / dt) + 2):
        after = tool.inverse(start + profile.share(cycle * dt) * way, q)
        yield after, (after - q) / dt
        q = after

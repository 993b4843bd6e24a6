"""Success of a placement, from physics: the object is in the cup, and the gripper has released it."""

import math
from collections.abc import Mapping
from typing import Final

from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING, Score
from bid_ros.tasks.placing.geometry import CUP_HEIGHT, OBJECT_DIAMETER, OBJECT_LENGTH, OBJECT_RADIUS, cup_inner_radius

DEPTH: Final = 0.02  # m by which the object's lower end must be below the rim
RELEASE_MARGIN: Final = 0.004  # m by which the opening must exceed the object's diameter to count as released


class PlacementScore(Score):
    """Success: the object is in the cup, and the gripper has released it.

    ``dropped`` means: on the table (or below it) outside the cup and not between the fingers.
    """

    moved = ("object", "cup")

    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Score the position of the ``object``, whose axis is its z, relative to the foot of an upright ``cup``."""
        (foot, _), (centre, quaternion) = bodies["cup"], bodies["object"]
        axis = matrix_from_quaternion(quaternion)[:, 2]
        if inside_cup(centre - foot, axis, DEPTH):
            return "success" if gripper_width > OBJECT_DIAMETER + RELEASE_MARGIN else PENDING
        held = abs(gripper_width - OBJECT_DIAMETER) <= RELEASE_MARGIN
        lowest = centre[2] - foot[2] - abs(axis[2]) * OBJECT_LENGTH / 2 - OBJECT_RADIUS * math.hypot(axis[0], axis[1])
        return "dropped" if lowest < 0.005 and not held else PENDING


def inside_cup(centre: Array, axis: Array, depth: float) -> bool:
    """Whether the object is in the cup.

    Args:
        centre: ``(3,)`` centre of the object relative to the cup's foot, m.
        axis: ``(3,)`` unit vector along the object.
        depth: m by which the lower end must be below the rim.
    """
    lower = centre - axis * math.copysign(OBJECT_LENGTH / 2, axis[2])
    if not -0.005 <= lower[2] <= CUP_HEIGHT - depth:
        return False
    points = (centre, lower)
    return all(math.hypot(p[0], p[1]) <= cup_inner_radius(float(p[2])) for p in points)

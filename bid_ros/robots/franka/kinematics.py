"""Forward kinematics of the Franka arms, which have the same lengths: Panda and FR3.

Source: Franka Robotics, "Robot and interface specifications", Denavit-Hartenberg parameters (Craig's convention).
"""

import math
from typing import Final

import numpy as np

from bid_ros.core.rotation import Array

_HALF: Final = math.pi / 2
# a (m), d (m) and alpha (rad) of each joint, base to wrist.
TABLE: Final = (
    (0.0, 0.333, 0.0),
    (0.0, 0.0, -_HALF),
    (0.0, 0.316, _HALF),
    (0.0825, 0.0, _HALF),
    (-0.0825, 0.384, -_HALF),
    (0.0, 0.0, _HALF),
    (0.088, 0.0, _HALF),
)
FLANGE: Final = 0.107  # m along the last joint's axis
HAND: Final = (0.1034, -math.pi / 4)  # m along the flange's z axis, and a turn about it: the Desk's end effector


def forward(joints: Array) -> tuple[Array, Array]:
    """Return the pose of the nominal end effector, between the tips of the Franka Hand.

    Args:
        joints: ``(7,)`` rad.

    Returns:
        Position ``(3,)`` m and rotation ``(3, 3)``, base frame.
    """
    place, rotation = np.zeros(3), np.eye(3)
    for (a, d, alpha), angle in zip(TABLE, joints, strict=True):
        cosine, sine, ca, sa = math.cos(angle), math.sin(angle), math.cos(alpha), math.sin(alpha)
        place = place + rotation @ [a, -sa * d, ca * d]
        rotation = rotation @ np.array(
            [[cosine, -sine, 0.0], [sine * ca, cosine * ca, -sa], [sine * sa, cosine * sa, ca]]
        )
    length, turn = HAND
    place = place + rotation[:, 2] * (FLANGE + length)
    cosine, sine = math.cos(turn), math.sin(turn)
    return place, rotation @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])

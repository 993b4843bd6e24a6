"""What a UR's links look like to the check that keeps them apart: capsules around their housings and tubes.

Measured on the pictures of the twin (:mod:`bid_ros.robots.ur.twin.model`) for a UR5e. A UR5 has the same housings.
"""

from typing import Final

from bid_ros.control.link_shapes import Capsule
from bid_ros.robots.ur.kinematics import MODELS

OFFSETS: Final = {"ur5e": (0.138, 0.007), "ur5": (0.136, 0.016)}  # m of upper arm and forearm along the elbow's axis

NEVER_MEET: Final = ((0, 2), (4, 6))  # the upper arm turns beside the base, wrist 3 around wrist 1


def links(model: str) -> tuple[Capsule, ...]:
    """Return the capsules of a model of :data:`bid_ros.robots.ur.kinematics.MODELS`."""
    arm, (upper, fore) = MODELS[model], OFFSETS[model]
    d1, a2, a3, d4, d5, d6 = arm.d1, arm.a2, arm.a3, arm.d4, arm.d5, arm.d6
    return (
        (0, (0.0, 0.0, 0.02), (0.0, 0.0, 0.05), 0.075),
        (1, (0.0, 0.0, d1 - 0.04), (0.0, 0.0, d1 + 0.03), 0.068),
        (1, (0.0, 0.0, d1), (0.0, -0.03, d1), 0.068),
        (2, (0.0, 0.0, upper - 0.033), (0.0, 0.0, upper + 0.042), 0.068),
        (2, (0.0, 0.0, upper), (a2, 0.0, upper), 0.05),
        (2, (a2, 0.0, upper - 0.034), (a2, 0.0, upper + 0.039), 0.062),
        (3, (0.0, 0.0, fore - 0.031), (0.0, 0.0, fore + 0.04), 0.06),
        (3, (0.0, 0.0, fore), (a3, 0.0, fore), 0.042),
        (3, (a3, 0.0, fore - 0.036), (a3, 0.0, fore + 0.031), 0.048),
        (4, (0.0, 0.0, d4 - 0.049), (0.0, 0.0, d4 + 0.029), 0.047),
        (4, (0.0, 0.0, d4), (0.0, -0.028, d4), 0.047),
        (5, (0.0, 0.0, d5 - 0.026), (0.0, 0.0, d5 + 0.027), 0.047),
        (5, (0.0, 0.0, d5), (0.0, 0.028, d5), 0.047),
        (6, (0.0, 0.0, d6 - 0.026), (0.0, 0.0, d6 - 0.021), 0.043),
    )

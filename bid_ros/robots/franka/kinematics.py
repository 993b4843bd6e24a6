"""Kinematics of the Franka arms, which have the same lengths, Panda and FR3, and the limits of their joints.

Source: Franka Robotics, "Robot and interface specifications", Denavit-Hartenberg parameters (Craig's convention).
"""

import math
from functools import partial
from typing import Final

import numpy as np

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.control.chain import Chain, modified_chain
from bid_ros.control.link_shapes import Capsule, capsules
from bid_ros.control.spatial import ZERO, Pose, Quaternion, Vector, add, multiply, rotated
from bid_ros.core.rotation import Array, matrix_from_quaternion, quaternion_from_matrix
from bid_ros.robots.franka.config import FrankaConfig

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


JOINTS: Final = 7
# Limits of the joints by the prefix of their names. Source: Franka Robotics, "Robot and interface specifications",
# "Limits for Panda" and "Limits for Franka Research 3". FR3's limit of speed falls near the end of a joint; the rest of
# it is what the robot's own controller watches.
LIMITS: Final = {
    "fr3": (
        (-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159),
        (2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159),
        (2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26),
        (10.0,) * JOINTS,
    ),
    "panda": (
        (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973),
        (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973),
        (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61),
        (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0),
    ),
}
# Source: Franka Robotics, "franka_description", capsules of the links against self-collision.
LINKS: Final[tuple[Capsule, ...]] = (
    (0, (-0.09, 0.0, 0.06), (-0.06, 0.0, 0.06), 0.06),
    (1, (0.0, 0.0, -0.333), (0.0, 0.0, -0.05), 0.06),
    (2, (0.0, 0.0, -0.06), (0.0, 0.0, 0.06), 0.06),
    (3, (0.0, 0.0, -0.22), (0.0, 0.0, -0.07), 0.06),
    (4, (0.0, 0.0, -0.06), (0.0, 0.0, 0.06), 0.06),
    (5, (0.0, 0.0, -0.31), (0.0, 0.0, -0.21), 0.06),
    (5, (0.0, 0.08, -0.20), (0.0, 0.08, -0.06), 0.025),
    (6, (0.0, 0.0, -0.07), (0.0, 0.0, 0.01), 0.05),
    (7, (0.0, 0.0, -0.06), (0.0, 0.0, 0.08), 0.04),
    (7, (0.039, 0.039, 0.082), (0.046, 0.046, 0.082), 0.03),
)
NEVER_MEET: Final = ((1, 3),)  # beside the shoulder, as in the maker's configuration of MoveIt
# Commanded joints stay this far from their ends, rad: the robot stops by itself at the end, and overshoots a little.
MARGIN: Final = 0.02


def _end_effector() -> Chain:
    length, turn = HAND
    cosine, sine = math.cos(turn), math.sin(turn)
    rotation = [[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]
    return modified_chain(TABLE).with_tool((0.0, 0.0, FLANGE + length), rotation)


CHAIN: Final = _end_effector()
"""From the base to the nominal end effector, between the tips of the Franka Hand."""


FLANGE_CHAIN: Final = modified_chain(TABLE).with_tool((0.0, 0.0, FLANGE), np.eye(3))
"""From the base to the flange."""


def _links(chain: Chain) -> tuple[tuple[Vector, Quaternion], ...]:
    """Return the frames of a chain in plain floats."""
    links = []
    for frame in chain.frames:
        (x, y, z), (a, b, c, d) = frame.position.tolist(), quaternion_from_matrix(frame.rotation).tolist()
        links.append(((x, y, z), (a, b, c, d)))
    return tuple(links)


_FLANGE_LINKS: Final = _links(FLANGE_CHAIN)


def flange_pose(joints: tuple[float, ...]) -> Pose:
    """Return where the flange is at ``(7,)`` rad. For one posture floats take a third of the time of arrays."""
    place, turn = ZERO, (0.0, 0.0, 0.0, 1.0)
    for (position, quaternion), angle in zip(_FLANGE_LINKS, (*joints, 0.0), strict=True):
        place, turn = add(place, rotated(turn, position)), multiply(turn, quaternion)
        turn = multiply(turn, (0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)))
    return Pose(place, turn)


def forward(joints: Array) -> tuple[Array, Array]:
    """Return the pose of the nominal end effector, between the tips of the Franka Hand.

    Args:
        joints: ``(7,)`` rad.

    Returns:
        Position ``(3,)`` m and rotation ``(3, 3)``, base frame.
    """
    return CHAIN.forward(joints)


def arm_model(config: FrankaConfig) -> ArmModel:
    """Return kinematics and limits of the joints of a Franka, with the tool of its configuration.

    The prefix of the joints' names says which robot it is. If it names none, the narrower limit of all robots counts.
    """
    named = [limits for robot, limits in LIMITS.items() if robot in config.joint_prefix]
    lows, highs, speeds, accelerations = zip(*(named or LIMITS.values()), strict=True)
    low = tuple(map(max, zip(*lows, strict=True)))
    high, speed, acceleration = (tuple(map(min, zip(*part, strict=True))) for part in (highs, speeds, accelerations))
    names = tuple(f"{config.joint_prefix}_joint{number + 1}" for number in range(JOINTS))
    limits = JointLimits(names, low, high, speed, acceleration).inside(MARGIN)
    chain = CHAIN.with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    return ArmModel(chain, limits, config.home, partial(capsules, LINKS), NEVER_MEET)

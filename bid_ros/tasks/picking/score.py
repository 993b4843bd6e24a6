"""Success of picking, judged from physics: the cup stands on the saucer, and the gripper is away from it."""

import math
from collections.abc import Mapping
from typing import Final

from numpy.typing import ArrayLike

from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING, Score
from bid_ros.tasks.picking.geometry import CUP_HEIGHT, CUP_RADIUS, FINGERTIP_BELOW_TOOL, SAUCER_HEIGHT, SAUCER_RADIUS

ASIDE: Final = SAUCER_RADIUS - CUP_RADIUS  # m by which the cup's axis may be beside the saucer's middle
HEIGHT: Final = 0.004  # m by which the foot may be over or under the saucer's top: it stands on it
TILT: Final = 0.14  # rad by which the cup may lean
FALLEN_TILT: Final = 0.8  # rad of lean from which a cup that is not held has fallen over
RELEASE_MARGIN: Final = 0.008  # m by which the opening must exceed the cup's diameter: it is let go of
CLEARANCE: Final = 0.005  # m by which the fingertips must be over the rim, or the same beside the cup


class PickingScore(Score):
    """Success: the cup stands on the saucer, and the gripper is away from it.

    ``dropped`` means: the cup has fallen over or off the table and is not between the fingers. A cup that was put down
    upright beside the saucer is pending: it can be picked again.
    """

    moved = ("cup", "saucer")

    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge the ``cup``'s place from the ``saucer`` and the tool's, which points down, from the cup."""
        foot, quaternion = bodies["cup"]
        cup, tool, leaning = foot - bodies["saucer"][0], tool - foot, lean(quaternion)
        open_hand = gripper_width > 2 * CUP_RADIUS + RELEASE_MARGIN
        standing = leaning <= TILT and abs(cup[2] - SAUCER_HEIGHT) <= HEIGHT
        if standing and math.hypot(cup[0], cup[1]) <= ASIDE:
            return "success" if open_hand and self._away(tool) else PENDING
        empty_hand = open_hand or self._away(tool)
        fallen = leaning > FALLEN_TILT or cup[2] < -0.05
        return "dropped" if fallen and empty_hand else PENDING

    def _away(self, tool: Array) -> bool:
        """Whether the tool, ``(3,)`` m from the cup's foot, is over the rim or beside the cup."""
        over = tool[2] - FINGERTIP_BELOW_TOOL > CUP_HEIGHT + CLEARANCE
        return bool(over or math.hypot(tool[0], tool[1]) > 3 * CUP_RADIUS + CLEARANCE)


def lean(quaternion: ArrayLike) -> float:
    """Angle in rad between straight up and the z axis of a body turned by ``quaternion`` ``(4,)`` xyzw."""
    return math.acos(max(-1.0, matrix_from_quaternion(quaternion)[2, 2]))

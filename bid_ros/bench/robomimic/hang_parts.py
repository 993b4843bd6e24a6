"""The stand, the frame and the tool of Tool Hang: what of them matters and where it is, and how to bring one somewhere.

The frame is a rod with a grip. Its lower end is pointed, and goes into the hole of the stand. From its upper end a bar
leads aside, with a post at the bar's end that keeps what hangs there. The tool is a wrench with a grip and a ring at
each end; the first ring goes over the post.

Places are in the axes of what is observed: the middle of the stand's base, the frame's corner between rod and bar, and
the middle of the tool.
"""

from typing import Final, NamedTuple

import numpy as np

from bid_ros.bench.robomimic.scripted_operator import Array, Motion, ScriptedOperator, about_vertical
from bid_ros.core.rotation import matrix_from_vector, vector_from_matrix

STAND, FRAME, TOOL = "stand", "frame", "tool"
MOUNT: Final = np.array([0.0, 0.045, 0.155])  # m, of the stand: the upper end of its hole
DEPTH: Final = 0.15  # m, of the hole
FRAME_GRIP: Final = np.array([0.0, 0.0, -0.034])  # m, of the frame; so are tip and post
TIP: Final = np.array([0.0, 0.0, -0.2207])
POST: Final = np.array([-0.0875, 0.0, 0.0157])  # its upper end
RING: Final = np.array([-0.0935, 0.0, 0.0])  # m, of the tool: the middle of its first ring
ASSEMBLED, HUNG = 42, 43  # index, among what is observed of the objects, of whether it is done
FLAT: Final = 0.97  # cosine; what lies on the table is not tilted by more
TABLE: Final = 0.8  # m


class Aim(NamedTuple):
    """Where the set-point has to go: ``goal`` ``(3,)`` m, ``yaw`` rad, ``lean`` ``(3, 3)``."""

    goal: Array
    yaw: float
    lean: Array


def aim(operator: ScriptedOperator, name: str, place: Array, turn: Array, share: float | None = None) -> Aim:
    """Return where the set-point has to go, so that a held object comes to a pose.

    Args:
        operator: who holds it, however it lies in the fingers.
        name: of the object.
        place: ``(3,)`` m, of the object.
        turn: ``(3, 3)`` of the object.
        share: None: the set-point is where the tool then is, but for the arm's error. Otherwise the arm is at rest,
            and the set-point moves by this share of what the object still lacks.
    """
    at, now = operator.object_pose(name)
    tool_at, tool_now = operator.tool_pose
    rotate = turn @ now.T
    goal, wanted = place + rotate @ (tool_at - at), rotate @ tool_now
    if share is not None:
        goal = operator.place + share * (goal - tool_at)
        wanted = matrix_from_vector(share * vector_from_matrix(rotate)) @ operator.turn
    yaw = nearest(float(np.arctan2(-wanted[0, 0], wanted[1, 0])), operator.yaw)
    return Aim(goal, yaw, about_vertical(-yaw) @ wanted)


def follow(operator: ScriptedOperator, to: Aim, pace: float = 1.0) -> Motion:
    """Move the set-point there."""
    yield from operator.move(to.goal, to.yaw, pace, to.lean)


def nearest(angle: float, other: float) -> float:
    """Return ``angle``, rad, plus whole turns, so that it is nearest to another one."""
    return angle + 2 * np.pi * round((other - angle) / (2 * np.pi))


def tilted(angle: float) -> Array:
    """Return the rotation ``(3, 3)`` by ``angle``, rad, about the y axis: it lowers the x axis."""
    return matrix_from_vector(np.array([0.0, angle, 0.0]))


def point(operator: ScriptedOperator, name: str, place: Array) -> Array:
    """Return where in the world, ``(3,)`` m, a place on an object is."""
    at, turn = operator.object_pose(name)
    return np.asarray(at + turn @ place)


def done(operator: ScriptedOperator, what: int) -> bool:
    """Return whether the frame is ASSEMBLED, or the tool HUNG."""
    return bool(operator.state.shown["object"][what] > 0.5)


def held(operator: ScriptedOperator, name: str, grip: Array) -> bool:
    """Return whether the grip of an object is with the fingers."""
    return bool(np.linalg.norm(point(operator, name, grip) - operator.tool_pose[0]) < 0.05)

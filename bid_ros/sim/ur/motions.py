"""What the controller's motion commands do to the commanded joints, one cycle at a time: all of them by name."""

from bid_ros.sim.ur.joint_motions import (
    GAIN,
    JOINTS,
    LIMITS,
    LOOKAHEAD,
    Hold,
    JointLimits,
    Motion,
    ServoJ,
    ServoL,
    SpeedJ,
    StopJ,
)
from bid_ros.sim.ur.moves import MoveJ, MoveL
from bid_ros.sim.ur.tool_motions import SpeedL, StopL

__all__ = [
    "GAIN",
    "JOINTS",
    "LIMITS",
    "LOOKAHEAD",
    "Hold",
    "JointLimits",
    "Motion",
    "MoveJ",
    "MoveL",
    "ServoJ",
    "ServoL",
    "SpeedJ",
    "SpeedL",
    "StopJ",
    "StopL",
]

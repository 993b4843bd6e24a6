"""Robot arms behind one seam, and the servo that turns chunks into set-points for any of them."""

from bid_ros.arms.base import Arm, ArmInfo, ArmState, Dynamics, Setpoint
from bid_ros.arms.registry import build_arm, load_arm_config
from bid_ros.arms.servo import ChunkServo, ServoConfig, ServoMode, ServoOutput

__all__ = [
    "Arm",
    "ArmInfo",
    "ArmState",
    "ChunkServo",
    "Dynamics",
    "ServoConfig",
    "ServoMode",
    "ServoOutput",
    "Setpoint",
    "build_arm",
    "load_arm_config",
]

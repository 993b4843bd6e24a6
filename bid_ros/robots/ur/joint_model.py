"""Kinematics and limits of a UR's joints, for tasks that command them."""

from typing import Final

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.control.chain import classic_chain
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.ur.config import JOINT_NAMES, JOINTS, UrConfig
from bid_ros.robots.ur.kinematics import MODELS

SHARE: Final = 0.8  # of the stream's limits that chunks may use: with the rest it catches up with its set-points


def arm_model(config: UrConfig) -> ArmModel:
    """Return kinematics and limits of the joints of a UR, with the tool of its configuration.

    The limits are the configuration's. Those of position are by default those of Universal Robots, "UR5e technical
    specifications": 360 degrees either way. Speed and acceleration are :data:`SHARE` of the stream's: the data sheet
    allows 180 degrees a second, and names no acceleration.
    """
    names = tuple(f"{config.joint_prefix}{name}_joint" for name in JOINT_NAMES)
    speed = (SHARE * config.max_joint_speed,) * JOINTS
    acceleration = (SHARE * config.max_joint_acceleration,) * JOINTS
    limits = JointLimits(names, config.joint_min, config.joint_max, speed, acceleration)
    chain = classic_chain(MODELS[config.model].table)
    tool = chain.with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    return ArmModel(tool, limits, (0.0,) * JOINTS)

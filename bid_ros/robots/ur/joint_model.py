"""Kinematics and limits of a UR's joints, for tasks that command them."""

from typing import Final

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.control.chain import classic_chain
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.ur.config import JOINT_NAMES, JOINTS, UrConfig
from bid_ros.robots.ur.kinematics import MODELS

ACCELERATION: Final = 10.0  # rad/s^2, of commanded joints; UR names no limit of its own


def arm_model(config: UrConfig) -> ArmModel:
    """Return kinematics and limits of the joints of a UR, with the tool of its configuration.

    The limits of position and speed are the configuration's. By default they are those of Universal Robots' data
    sheet, "UR5e technical specifications": 360 degrees either way, and a speed below 180 degrees a second.
    """
    names = tuple(f"{config.joint_prefix}{name}_joint" for name in JOINT_NAMES)
    speed, acceleration = (config.max_joint_speed,) * JOINTS, (ACCELERATION,) * JOINTS
    limits = JointLimits(names, config.joint_min, config.joint_max, speed, acceleration)
    chain = classic_chain(MODELS[config.model].table)
    tool = chain.with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    return ArmModel(tool, limits, (0.0,) * JOINTS)

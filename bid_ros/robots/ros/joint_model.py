"""Kinematics and limits of the joints of a robot with a ROS driver, for tasks that command them."""

from collections.abc import Sequence
from typing import Final

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.robots.ros.config import JOINT_COMMANDS, RosConfig
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.serial import serial_chain
from bid_ros.robots.ros.twin.description import arm_urdf
from bid_ros.robots.ros.urdf import UrdfChain, is_file, read_chain, read_chain_file

SHARE: Final = 0.8  # of the driver's limits that chunks may use: with the rest it makes up for what came late
SPARE: Final = 0.005  # rad of a limit that rounding may take
SAVE: Final = "ros2 param get --hide-type /robot_state_publisher robot_description > arm.urdf"


def arm_model(config: RosConfig) -> ArmModel:
    """Return kinematics and limits of the joints, with the tool of the configuration.

    The limits are those that the driver keeps: :data:`SHARE` of speed and acceleration. Those of position are a little
    narrower, so that no set-point of a chunk is one that the driver refuses.

    Raises:
        ArmError: the robot is not commanded by its joints, no file has its URDF, or a limit is not known.
    """
    if not config.by_joints:
        what = f"ros: command is {config.command}, which moves the tool"
        raise ArmError(f"{what}; valid for a task that commands joints are {', '.join(JOINT_COMMANDS)}")
    chain = _chain(config)
    driver = DriverLimits.of(config, chain)
    limits = JointLimits(
        driver.names,
        _tuple(driver.lower),
        _tuple(driver.upper),
        _tuple(SHARE * driver.speed),
        (SHARE * driver.acceleration,) * len(driver.names),
    ).inside(margin(config, float(driver.speed.max())))
    tool = serial_chain(chain).with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    return ArmModel(tool, limits, config.home or (0.0,) * len(driver.names))


def margin(config: RosConfig, speed: float) -> float:
    """Return how far inside the driver's limits those of chunks are, rad.

    A chunk's joint may come to rest at its limit with :data:`SHARE` of the acceleration. The driver asks that the joint
    could rest inside its own limit after it went on for ``ahead_s``, with all of the acceleration. This is the most
    that the one needs beyond the other, at any speed.

    Args:
        config: of the robot.
        speed: the largest that the driver allows any joint, rad/s.
    """
    ahead_s, fastest = config.reach_s, SHARE * speed
    less = (1 / SHARE - 1) / (2 * config.joint_acceleration)  # s^2/rad: how much sooner the driver rests, by speed^2
    worst = min(fastest, ahead_s / (2 * less))
    return SPARE + worst * ahead_s - less * worst**2


def _chain(config: RosConfig) -> UrdfChain:
    if is_file(config.urdf):
        return read_chain_file(config.urdf, config.base_link, config.tool_link, config.address)
    if config.twin:
        return read_chain(arm_urdf(), config.base_link, config.tool_link, "the twin's URDF")
    what = f"ros: urdf is the topic {config.urdf}"
    raise ArmError(f"{what}; valid for a task that commands joints is a file: {SAVE}, then urdf: arm.urdf")


def _tuple(values: Sequence[float] | Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

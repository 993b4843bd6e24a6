"""What a connected robot consists of: where its tool is, what drives it, its limits and its gripper."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Bus
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import SetpointFollower, joint_follower
from bid_ros.robots.ros.gripper import RosGripper
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.link import RosLink
from bid_ros.robots.ros.motion import MotionExecutor, joint_motion
from bid_ros.robots.ros.tool import ToolSource
from bid_ros.robots.ros.tool_stream import tool_follower
from bid_ros.robots.ros.transforms import Pose

# Largest speed of a joint, rad/s, at which joints and transforms are held against each other: the transforms are a
# little older, and what the joints went since would be taken for an error of the URDF for as long as they are followed.
STILL: Final = 0.05


@dataclass(frozen=True)
class Connection:
    """A connected robot.

    Attributes:
        tool: says where the tool is.
        follower: drives the arm.
        motion: carries joint motions out; None: its controller takes no joints.
        limits: of the joints; None: the URDF is not needed, and the controller has limits of its own.
        hand: its gripper; None: it has none.
    """

    tool: ToolSource
    follower: SetpointFollower
    motion: MotionExecutor | None
    limits: DriverLimits | None
    hand: GripperThread | None


def connected(config: RosConfig, bus: Bus, link: RosLink, lose: Callable[[str], None]) -> Connection:
    """Wait for a robot, and return what it consists of.

    Args:
        config: of the robot.
        bus: of the robot.
        link: to its topics.
        lose: is told why the gripper failed, from the gripper's thread.

    Raises:
        ArmError: something is not there in time, or does not fit the configuration.
    """
    chain = link.open()
    tool = link.tool(chain)

    def measured() -> Pose:
        found = tool.pose(link.read())
        return found.position, found.rotation

    def measured_still() -> Pose:
        speed = float(np.abs(link.read().speeds).max())
        if not speed <= STILL:
            what = f"robot at {config.address}: a joint moves at {speed:.2f} rad/s"
            raise ArmError(
                f"{what}; valid at the start is up to {STILL:g}, so that joints and transforms fit: let it rest"
            )
        return measured()

    limits = None if chain is None else DriverLimits.of(config, chain)
    if config.by_joints and chain is not None and limits is not None:
        joints = joint_follower(config, bus, chain, limits, measured_still if config.tool_pose == "tf" else None)
        follower: SetpointFollower = joints
        motion = joint_motion(config, bus, joints)
    else:
        follower, motion = tool_follower(config, bus, measured), None
    return Connection(tool, follower, motion, limits, _gripper(config, bus, link, lose))


def _gripper(config: RosConfig, bus: Bus, link: RosLink, lose: Callable[[str], None]) -> GripperThread | None:
    if config.gripper is None:
        return None
    device = RosGripper(config.gripper, bus, link.joints, config.address)
    device.begin()
    hand = GripperThread(device, config.gripper_thresholds, (ArmError,), lambda error: lose(str(error)))
    hand.start()
    return hand

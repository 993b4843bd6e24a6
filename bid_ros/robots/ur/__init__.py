"""Universal Robots arms: the driver over ur_rtde, the kinematics, and a controller twin."""

from __future__ import annotations

from bid_ros.core.errors import ArmError
from bid_ros.core.extras import extra
from bid_ros.robots.base import Arm
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker, later
from bid_ros.robots.ur.config import JOINTS, UrConfig


def _driver(config: UrConfig) -> Arm:
    with extra("ur", "robot 'ur'", ArmError):
        from bid_ros.robots.ur.driver import UrArm
    return UrArm(config)


ROBOT = RobotDescriptor(
    name="ur",
    config=UrConfig,
    driver=_driver,
    library="ur-rtde",
    # RTDE, Dashboard, scripts and the gripper's URCap: fixed by the controller.
    ports=(30004, 29999, 30001, 30002, 30003, 63352),
    template="ur5_pick",
    twin=TwinMaker(later(f"{__name__}.twin.twin:UrTwin"), later(f"{__name__}.twin.model:scene_model")),
    joints=JOINTS,
)

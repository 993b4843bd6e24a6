"""Franka arms: the driver over franky, and a twin that serves libfranka's protocol."""

from __future__ import annotations

from bid_ros.core.errors import ArmError
from bid_ros.core.extras import extra
from bid_ros.robots.base import Arm
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker, later
from bid_ros.robots.franka.config import FrankaConfig


def _driver(config: FrankaConfig) -> Arm:
    with extra("franka", "robot 'franka'", ArmError):
        from bid_ros.robots.franka.driver import FrankaArm
    return FrankaArm(config)


ROBOT = RobotDescriptor(
    name="franka",
    config=FrankaConfig,
    driver=_driver,
    library="franky-control",
    ports=(1337, 1338),  # robot and gripper, fixed by the libfranka protocol
    template="franka_place",
    twin=TwinMaker(later(f"{__name__}.twin:FrankaTwin"), later(f"{__name__}.model:scene_model")),
    joints=7,
)

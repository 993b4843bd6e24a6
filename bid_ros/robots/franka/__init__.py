"""Franka arms: the driver over franky, and a twin that serves libfranka's protocol."""

from __future__ import annotations

from typing import Any

from bid_ros.core.errors import ArmError
from bid_ros.core.extras import extra
from bid_ros.robots.base import Arm
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.sim.twin import Twin, TwinScene


def _driver(config: FrankaConfig) -> Arm:
    with extra("franka", "robot 'franka'", ArmError):
        from bid_ros.robots.franka.driver import FrankaArm
    return FrankaArm(config)


def _twin(scene: TwinScene, address: str) -> Twin:
    from bid_ros.robots.franka.twin import FrankaTwin

    return FrankaTwin(scene, [address])


def _scene_model(scene: TwinScene) -> Any:
    from bid_ros.robots.franka.model import scene_model

    return scene_model(scene)


ROBOT = RobotDescriptor(
    name="franka",
    config=FrankaConfig,
    driver=_driver,
    library="franky-control",
    ports=(1337, 1338),  # robot and gripper, fixed by the libfranka protocol
    template="franka_place",
    twin=TwinMaker(_twin, _scene_model),
    joints=7,
)

"""Universal Robots arms: the driver over ur_rtde, the kinematics, and a controller twin."""

from __future__ import annotations

from typing import Any

from bid_ros.core.errors import ArmError
from bid_ros.core.extras import extra
from bid_ros.robots.base import Arm
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker
from bid_ros.robots.ur.config import JOINTS, UrConfig
from bid_ros.sim.twin import Twin, TwinScene


def _driver(config: UrConfig) -> Arm:
    with extra("ur", "robot 'ur'", ArmError):
        from bid_ros.robots.ur.driver import UrArm
    return UrArm(config)


def _twin(scene: TwinScene, address: str) -> Twin:
    from bid_ros.robots.ur.twin.config import UrControllerConfig
    from bid_ros.robots.ur.twin.twin import UrTwin

    return UrTwin(scene, UrControllerConfig(address))


def _scene_model(scene: TwinScene) -> Any:
    from bid_ros.robots.ur.twin.model import scene_model

    return scene_model(scene)


ROBOT = RobotDescriptor(
    name="ur",
    config=UrConfig,
    driver=_driver,
    library="ur-rtde",
    # RTDE, Dashboard, scripts and the gripper's URCap: fixed by the controller.
    ports=(30004, 29999, 30001, 30002, 30003, 63352),
    template="ur5_pick",
    twin=TwinMaker(_twin, _scene_model),
    joints=JOINTS,
)

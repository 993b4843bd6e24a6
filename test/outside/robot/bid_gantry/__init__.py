"""A robot: three slides and two fingers, which follow set-points exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bid_gantry.driver import GantryArm, GantryConfig
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker
from bid_ros.sim.twin import Twin, TwinScene


# The twin's libraries are imported on demand: who drives the robot does not need them.
def _twin(scene: TwinScene, address: str) -> Twin:
    from bid_gantry.twin import GantryTwin

    return GantryTwin(scene, address)


def _scene_model(scene: TwinScene) -> Any:
    from bid_gantry.twin import scene_model

    return scene_model(scene)


ROBOT = RobotDescriptor(
    name="gantry",
    config=GantryConfig,
    driver=GantryArm,
    library="",
    ports=(47100,),
    template=str(Path(__file__).parent / "template"),
    twin=TwinMaker(_twin, _scene_model),
)

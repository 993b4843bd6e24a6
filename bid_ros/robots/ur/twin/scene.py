"""The UR5e with its gripper in the scene of a task."""

from __future__ import annotations

from typing import Final

import mujoco

from bid_ros.robots.robotiq.model import add_gripper
from bid_ros.robots.ur.twin.model import add_ur5e, compile_scene, empty_scene, worldbody_of
from bid_ros.sim.mjcf import lamp, plain_visuals
from bid_ros.sim.twin import TwinScene

# Joint angles in rad that put the tool at (0.48, -0.05, 0.28) m, pointing straight down, fingers opening along base y.
HOME_Q: Final = (2.75794812, -1.63276659, 1.72746235, -1.66549208, -1.57079633, -1.95444082)


def scene_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the twin's scene: one model for the physics and, in another process, for the cameras."""
    found = empty_scene()
    plain_visuals(found, (0.5, 0.0, 0.15))
    worldbody = worldbody_of(found)
    lamp(worldbody, (1.0, -0.6, 2.0), (-0.4, 0.35, -1.0))
    scene.furnish(found, add_gripper(found, add_ur5e(worldbody)))
    return compile_scene(found)

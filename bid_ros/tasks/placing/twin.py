"""The scene of placing in the Franka's twin."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import mujoco

from bid_ros.tasks.placing.cup_path import EpisodeScene, episode_scene
from bid_ros.tasks.placing.scene import furnish
from bid_ros.tasks.placing.world import PlacingWorld


class PlacingScene:
    """A :class:`bid_ros.sim.twin.TwinScene`: a table, an object between the fingers and a cup that moves."""

    bodies: tuple[str, ...] = ("cup", "object")

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, cup, object and cameras."""
        furnish(scene, hand)

    def layout(self, seed: int, speed: float) -> EpisodeScene:
        """Return the cup's path of a seed; TaskError as :func:`episode_scene`."""
        return episode_scene(seed, speed)

    def world(self, model: mujoco.MjModel, data: mujoco.MjData) -> PlacingWorld:
        """Return what moves the cup and hands the object over."""
        return PlacingWorld(model, data)

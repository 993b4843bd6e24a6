"""The scene of picking in the UR's twin."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import mujoco

from bid_ros.tasks.picking.scene import furnish
from bid_ros.tasks.picking.string_path import PickingLayout, picking_layout
from bid_ros.tasks.picking.world import PickingWorld


class PickingScene:
    """A :class:`bid_ros.sim.twin.TwinScene`: a table, a cup on a string and a saucer."""

    bodies: tuple[str, ...] = ("cup", "saucer")

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, saucer, cup and cameras."""
        furnish(scene, hand)

    def layout(self, seed: int, speed: float) -> PickingLayout:
        """Return the positions of cup and saucer, and the path of the string. Raises as :func:`picking_layout`."""
        return picking_layout(seed, speed)

    def world(self, model: mujoco.MjModel, data: mujoco.MjData) -> PickingWorld:
        """Return the world that pulls the cup until the fingers hold it."""
        return PickingWorld(model, data)

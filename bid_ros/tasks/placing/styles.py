"""Styles and paths of the scripted placing demonstrations."""

from dataclasses import dataclass

import numpy as np

from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.sim.twin import Array
from bid_ros.tasks.placing.geometry import CUP_RIM_RADIUS, CUP_WALL, OBJECT_RADIUS, RIM_Z
from bid_ros.tasks.scripted import Manner, ScriptedConfig, heading, way_points


@dataclass(frozen=True)
class PlacingConfig(ScriptedConfig):
    """How the scripted teleoperator places; :class:`bid_ros.tasks.scripted.ScriptedConfig` has the rest.

    Misses are where the way to the cup ends, on the descent down to the rim, and inside the cup. Pauses are before the
    way to the cup, in the middle of it and where it ends.

    Attributes:
        release_depth: of the object's end below the rim where the gripper opens, m.
    """

    release_depth: float = 0.030
    strategies: tuple[str, ...] = ("straight", "high", "left", "right", "low")
    detours: tuple[tuple[float, float], ...] = ((0.06, 0.12),)
    open_width: float = OPEN_WIDTH
    reach_min: tuple[float, float, float] = (0.34, -0.26, 0.05)
    reach_max: tuple[float, float, float] = (0.66, 0.26, 0.50)

    @property
    def above_z(self) -> float:
        """Height in m of the tool over the cup before the descent, base frame."""
        return RIM_Z + self.clearance

    @property
    def release_z(self) -> float:
        """Height in m of the tool at which the gripper opens, base frame."""
        return RIM_Z - self.release_depth


def carry_points(start: Array, cup: Array, manner: Manner, config: PlacingConfig) -> Array:
    """Return start, middle and end ``(3, 3)`` of the way from ``start`` (3,) to a place straight above the cup (2,)."""
    above, strategy, detour = np.append(cup, config.above_z), manner.strategies[0], manner.detours[0]
    along, forward = heading(start, above)
    if strategy == "high":
        top = max(start[2], above[2]) + 0.6 * detour
        middle, end = np.append(start[:2] + 0.25 * along, top), np.append(cup, top)
    elif strategy == "low":
        # Beside the cup, farther away than it and the object are wide, with the object's end just over the rim.
        away = CUP_RIM_RADIUS + CUP_WALL + OBJECT_RADIUS + detour
        middle, end = np.append(above[:2] - away * forward, above[2] - 0.8 * config.clearance), above
    else:
        return way_points(start, above, strategy, detour, config)
    return np.stack([start, np.clip(middle, config.reach_min, config.reach_max), end])

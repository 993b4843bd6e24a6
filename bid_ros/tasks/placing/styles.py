"""Styles and paths of the scripted placing demonstrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.tasks.placing.geometry import CUP_RIM_RADIUS, CUP_WALL, OBJECT_RADIUS, RIM_Z
from bid_ros.tasks.scripted import (
    STYLES,
    Miss,
    ScriptedConfig,
    check_draw,
    draw_pauses,
    draw_speed,
)

Array = NDArray[np.float64]
STRATEGIES: Final = ("straight", "high", "left", "right", "low")


@dataclass(frozen=True)
class PlacingConfig(ScriptedConfig):
    """How the scripted teleoperator places; :class:`bid_ros.tasks.scripted.ScriptedConfig` has the rest.

    Attributes:
        release_depth: of the object's end below the rim where the gripper opens, m.
        retreat: of the tool upwards after the release, m.
        release: s at rest between the end of the descent and the retreat.
        release_lead: s before the end of the descent at which the gripper is told to open. An operator who waits for
            the tool to rest teaches that opening is always a little later, and a policy that replans at rest waits
            for ever.
        misses: how far beside the cup's axis most diverse demonstrations are, and correct it: where the way to the
            cup ends, on the descent down to the rim, and inside the cup. Without them the tool is always over the cup
            when it is low, and a policy has no reason to look.
        open_width: asked of the gripper, m.
        reach_min, reach_max: corners of the box that detours stay in, m.
    """

    release_depth: float = 0.030
    retreat: float = 0.100
    release: float = 0.45
    release_lead: float = 0.2
    misses: tuple[Miss, Miss, Miss] = (Miss(0.75, 0.012, 0.045), Miss(0.8, 0.004, 0.020), Miss(0.6, 0.001, 0.005))
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


@dataclass(frozen=True)
class Manner:
    """What one demonstration does: the outcome of the draws.

    Attributes:
        strategy: one of STRATEGIES.
        speed: factor on every speed.
        detour: m by which ``high``, ``left``, ``right`` and ``low`` leave the straight line.
        pauses: s of rest before the way to the cup, in the middle of it and where it ends.
        blend: s of overlap between moves without a pause between them.
        misses: m (x, y) from the cup's axis, base frame: where the way to the cup ends, on the descent down to the
            rim, and inside the cup.
        near: m of the object's end over the rim at which the second of them has been corrected.
        late: share of the descent to there after which that correction begins.
    """

    strategy: str
    speed: float
    detour: float
    pauses: tuple[float, float, float]
    blend: float
    misses: tuple[tuple[float, float], tuple[float, float], tuple[float, float]] = ((0.0, 0.0),) * 3
    near: float = 0.0
    late: float = 0.0


def draw_manner(style: str, seed: int, config: PlacingConfig) -> Manner:
    """Return what the demonstration with this style and seed does.

    Raises:
        BidError: the style is unknown or the seed negative.
    """
    check_draw(style, seed, STYLES)
    if style == "clean":
        return Manner("straight", 1.0, 0.0, (0.0, 0.0, 0.0), config.blend)
    random = np.random.default_rng(seed)
    begin, middle, over = draw_pauses(random, 3, config.pauses)
    return Manner(
        strategy=STRATEGIES[int(random.integers(len(STRATEGIES)))],
        speed=draw_speed(random, config.speed_factors),
        detour=float(random.uniform(0.06, 0.12)),
        pauses=(begin, middle, over),
        blend=float(random.uniform(0.0, config.blend)),
        misses=(config.misses[0].draw(random), config.misses[1].draw(random), config.misses[2].draw(random)),
        near=float(random.uniform(*config.near)),
        late=float(random.uniform()),
    )


def carry_points(start: Array, cup: Array, manner: Manner, config: PlacingConfig) -> Array:
    """Return start, middle and end ``(3, 3)`` of the way from ``start`` (3,) to a place straight above the cup (2,)."""
    above = np.array([cup[0], cup[1], config.above_z])
    along = above[:2] - start[:2]
    length = float(np.linalg.norm(along))
    # Straight above the cup there is no direction to it; any will do.
    forward = along / length if length > 0.01 else np.array([1.0, 0.0])
    end = above
    if manner.strategy == "high":
        top = max(start[2], above[2]) + 0.6 * manner.detour
        middle = np.append(start[:2] + 0.25 * along, top)
        end = np.append(cup[:2], top)
    elif manner.strategy == "low":
        # Beside the cup, farther away than it and the object are wide, with the object's end just over the rim.
        away = CUP_RIM_RADIUS + CUP_WALL + OBJECT_RADIUS + manner.detour
        middle = np.append(above[:2] - away * forward, above[2] - 0.8 * config.clearance)
    else:
        side = {"straight": 0.0, "left": manner.detour, "right": -manner.detour}[manner.strategy]
        middle = 0.5 * (start + above) + side * np.array([-forward[1], forward[0], 0.0])
    return np.stack([start, np.clip(middle, config.reach_min, config.reach_max), end])

"""Styles and ways of the scripted picking demonstrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.tasks.picking.geometry import GRASP_TOOL_HEIGHT, RIM_Z, SAUCER_HEIGHT
from bid_ros.tasks.scripted import (
    STRAIGHT_ON,
    STYLES,
    Miss,
    Offset,
    ScriptedConfig,
    check_draw,
    draw_pauses,
    draw_speed,
)

Array = NDArray[np.float64]
RECOVER: Final = "recover"
PICKING_STYLES: Final = (*STYLES, RECOVER)
STRATEGIES: Final = ("straight", "high", "left", "right")


@dataclass(frozen=True)
class PickingConfig(ScriptedConfig):
    """How the scripted teleoperator picks; :class:`bid_ros.tasks.scripted.ScriptedConfig` has the rest.

    Attributes:
        lift: of the cup's foot over the saucer's top on the way there, m.
        release_gap: of the cup's foot over the saucer where the gripper has opened, m: a cup that is pressed down on
            the saucer is pushed up between the pads.
        retreat: of the tool upwards after the release, m.
        approach_speed, descend_speed: peaks of a clean demonstration, m/s.
        close_lead, release_lead: s before the end of the descent at which the gripper is told to close or open. An
            operator who waits for the tool to rest teaches that closing is always a little later, and a policy that
            replans at rest waits for ever.
        grasp, release: s at rest between the end of the descent and the lift or the retreat: just long enough for the
            fingers, so that what the width shows, not how long the tool has been at rest, says when to go on.
        misses: how far beside the cup's axis most diverse demonstrations are, and correct it: where the way to the
            cup ends, on the descent until the fingertips reach the rim, and on either side of the cup; and how far
            beside the saucer the way there ends. Without them the tool is always over the cup when it is low, and a
            policy has no reason to look.
        open_width: asked of the gripper, m.
        reach_min, reach_max: corners of the box that detours stay in, m.
    """

    lift: float = 0.060
    release_gap: float = 0.002
    retreat: float = 0.120
    approach_speed: float = 0.22
    descend_speed: float = 0.16
    carry_speed: float = 0.22
    retreat_speed: float = 0.18
    max_speed: float = 0.26
    close_lead: float = 0.15
    grasp: float = 0.30
    release_lead: float = 0.10
    release: float = 0.30
    pauses: tuple[float, float] = (0.2, 0.8)
    misses: tuple[Miss, Miss, Miss, Miss] = (
        Miss(0.75, 0.012, 0.045),
        Miss(0.8, 0.004, 0.020),
        Miss(0.6, 0.001, 0.005),
        Miss(0.6, 0.008, 0.030),
    )
    open_width: float = MAX_OPENING
    reach_min: tuple[float, float, float] = (0.34, -0.28, 0.05)
    reach_max: tuple[float, float, float] = (0.64, 0.30, 0.44)

    @property
    def above_z(self) -> float:
        """Height in m of the tool over the cup before the descent, base frame."""
        return RIM_Z + self.clearance

    @property
    def clear_z(self) -> float:
        """Height in m of the tool at which closed fingers are well over the rim, base frame."""
        return RIM_Z + 0.25 * self.clearance

    @property
    def release_z(self) -> float:
        """Height in m of the tool at which the cup is let go over the saucer, base frame."""
        return GRASP_TOOL_HEIGHT + SAUCER_HEIGHT + self.release_gap

    @property
    def carry_z(self) -> float:
        """Height in m of the tool that carries the cup over to the saucer, base frame."""
        return GRASP_TOOL_HEIGHT + SAUCER_HEIGHT + self.lift


@dataclass(frozen=True)
class PickingManner:
    """What one demonstration does: the outcome of the draws.

    Attributes:
        approach, carry: the ways to the cup and to the saucer, each one of STRATEGIES.
        speed: factor on every speed.
        detours: m by which the two ways leave the straight line.
        pauses: s of rest before the way to the cup, in the middle of it, over the cup and over the saucer.
        blend: s of overlap between moves without a pause between them.
        misses: m (x, y), base frame: from the cup's axis where the way to it ends, on the descent down to the rim and
            beside the cup; from the saucer's middle where the way to it ends.
        near: m over the rim and over the saucer at which a miss has been corrected.
        late: shares of the two descents to there after which that correction begins.
    """

    approach: str
    carry: str
    speed: float
    detours: tuple[float, float]
    pauses: tuple[float, float, float, float]
    blend: float
    misses: tuple[Offset, Offset, Offset, Offset] = (STRAIGHT_ON,) * 4
    near: tuple[float, float] = (0.0, 0.0)
    late: tuple[float, float] = (0.0, 0.0)


def draw_manner(style: str, seed: int, config: PickingConfig) -> PickingManner:
    """Return what the demonstration with this style and seed does.

    Raises:
        BidError: the style is unknown or the seed negative.
    """
    check_draw(style, seed, PICKING_STYLES)
    if style == "clean":
        return PickingManner("straight", "straight", 1.0, (0.0, 0.0), (0.0, 0.0, 0.0, 0.0), config.blend)
    random = np.random.default_rng(seed)
    before, middle, over_cup, over_saucer = draw_pauses(random, 4, config.pauses)
    first, second, third, fourth = config.misses
    return PickingManner(
        # Back to the cup it is only a hand's breadth.
        approach=STRATEGIES[int(random.integers(len(STRATEGIES)))] if style != RECOVER else "straight",
        carry=STRATEGIES[int(random.integers(len(STRATEGIES)))],
        speed=draw_speed(random, config.speed_factors),
        detours=(float(random.uniform(0.05, 0.11)), float(random.uniform(0.03, 0.08))),
        pauses=(before, middle, over_cup, over_saucer),
        blend=float(random.uniform(0.0, config.blend)),
        misses=(first.draw(random), second.draw(random), third.draw(random), fourth.draw(random)),
        near=(float(random.uniform(*config.near)), float(random.uniform(*config.near))),
        late=(float(random.uniform()), float(random.uniform())),
    )


def way_points(start: Array, end: Array, strategy: str, detour: float, config: PickingConfig) -> Array:
    """Return start, middle and end ``(3, 3)`` m of a way from ``start`` (3,) to ``end`` (3,).

    The middle of ``high`` is a ``detour`` over the higher of both, that of ``left`` and ``right`` as far aside.
    """
    along = end[:2] - start[:2]
    length = float(np.linalg.norm(along))
    # Straight above the end there is no direction to it; any will do.
    forward = along / length if length > 0.01 else np.array([1.0, 0.0])
    if strategy == "high":
        middle = np.append(start[:2] + 0.5 * along, max(start[2], end[2]) + detour)
    else:
        side = {"straight": 0.0, "left": detour, "right": -detour}[strategy]
        middle = 0.5 * (start + end) + side * np.array([-forward[1], forward[0], 0.0])
    return np.stack([start, np.clip(middle, config.reach_min, config.reach_max), end])

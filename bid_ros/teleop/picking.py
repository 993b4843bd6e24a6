"""Geometry, styles and ways of the scripted picking demonstrations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.checks import check_positive, check_range
from bid_ros.errors import BidError
from bid_ros.rotation import DOWN_6D
from bid_ros.teleop.placing import STYLES, Miss

Array = NDArray[np.float64]
RECOVER: Final = "recover"
PICKING_STYLES: Final = (*STYLES, RECOVER)
STRATEGIES: Final = ("straight", "high", "left", "right")


@dataclass(frozen=True)
class PickingGeometry:
    """Sizes of the picking task in m. Heights are over the table, on which cup and saucer stand.

    Attributes:
        table_height: z of the table's top in the base frame.
        cup_height: of the rim over the foot.
        grasp_below_rim: from the rim down to the tool, the middle of the pads, at the grasp.
        fingertip_below_tool: from the tool down to the ends of the fingers.
        saucer_height: of the saucer's top.
        clearance: of the fingertips over the rim where the descent begins.
        lift: of the cup's foot over the saucer's top on the way there.
        release_gap: of the cup's foot over the saucer where the gripper has opened: a cup that is pressed down on the
            saucer is pushed up between the pads.
        retreat: of the tool upwards after the release.
    """

    table_height: float = 0.0
    cup_height: float = 0.075
    grasp_below_rim: float = 0.030
    fingertip_below_tool: float = 0.018
    saucer_height: float = 0.008
    clearance: float = 0.050
    lift: float = 0.060
    release_gap: float = 0.002
    retreat: float = 0.120

    def __post_init__(self) -> None:
        for name in ("cup_height", "saucer_height", "clearance", "lift", "retreat"):
            check_range("picking", name, getattr(self, name), 1e-3, 0.5, ValueError, "m")
        check_range("picking", "fingertip_below_tool", self.fingertip_below_tool, 0, 0.1, ValueError, "m")
        check_range("picking", "grasp_below_rim", self.grasp_below_rim, 0, self.highest_grasp, ValueError, "m")
        check_range("picking", "release_gap", self.release_gap, 0, 0.02, ValueError, "m")
        check_range("picking", "table_height", self.table_height, -1, 1, ValueError, "m")

    @property
    def highest_grasp(self) -> float:
        """Largest ``grasp_below_rim`` in m at which the fingertips do not touch the table."""
        return self.cup_height - self.fingertip_below_tool

    @property
    def grasp_z(self) -> float:
        """Height in m of the tool at which the cup on the table is grasped, base frame."""
        return self.table_height + self.cup_height - self.grasp_below_rim

    @property
    def rim_z(self) -> float:
        """Height in m of the tool at which the fingertips are level with the rim of a cup on the table, base frame."""
        return self.table_height + self.cup_height + self.fingertip_below_tool

    @property
    def above_z(self) -> float:
        """Height in m of the tool over the cup before the descent, base frame."""
        return self.rim_z + self.clearance

    @property
    def clear_z(self) -> float:
        """Height in m of the tool at which closed fingers are well over the rim, base frame."""
        return self.rim_z + 0.25 * self.clearance

    @property
    def release_z(self) -> float:
        """Height in m of the tool at which the cup is let go over the saucer, base frame."""
        return self.grasp_z + self.saucer_height + self.release_gap

    @property
    def carry_z(self) -> float:
        """Height in m of the tool that carries the cup over to the saucer, base frame."""
        return self.grasp_z + self.saucer_height + self.lift


@dataclass(frozen=True)
class PickingConfig:
    """How the scripted teleoperator moves.

    Attributes:
        geometry: sizes.
        approach_speed, descend_speed, carry_speed, lower_speed, retreat_speed: peaks of a clean demonstration, m/s.
        max_speed: no peak is above it, m/s.
        acceleration, jerk: peaks, m/s^2 and m/s^3.
        correction: factor on both in corrections on the descent. How fast these are decides how far a policy that
            learned from them stays behind a cup that moves.
        blend: s by which the next move may begin before the one before it has come to rest.
        close_lead, release_lead: s before the end of the descent at which the gripper is told to close or open. An
            operator who waits for the tool to rest teaches that closing is always a little later, and a policy that
            replans at rest waits for ever.
        grasp, release: s at rest between the end of the descent and the lift or the retreat: just long enough for the
            fingers, so that what the width shows, not how long the tool has been at rest, says when to go on.
        hold: s at rest at the end.
        speed_factors: range of the diverse style's factor on every speed.
        pauses: range of its idle pauses, s.
        misses: how far beside the cup's axis most diverse demonstrations are, and correct it: where the way to the
            cup ends, on the descent until the fingertips reach the rim, and on either side of the cup; and how far
            beside the saucer the way there ends. Without them the tool is always over the cup when it is low, and a
            policy has no reason to look.
        near: range of the height over the rim (or over the saucer) down to which a miss is corrected, m.
        closed_width, open_width: asked of the gripper, m. 0 squeezes whatever is between the fingers.
        rotation_6d: of the tool, all the way.
        frame_id: frame of the chunks.
        reach_min, reach_max: corners of the box that detours stay in, m.
    """

    geometry: PickingGeometry = field(default_factory=PickingGeometry)
    approach_speed: float = 0.22
    descend_speed: float = 0.16
    carry_speed: float = 0.22
    lower_speed: float = 0.14
    retreat_speed: float = 0.18
    max_speed: float = 0.26
    acceleration: float = 1.2
    jerk: float = 20.0
    correction: float = 2.5
    blend: float = 0.35
    close_lead: float = 0.15
    grasp: float = 0.30
    release_lead: float = 0.10
    release: float = 0.30
    hold: float = 0.7
    speed_factors: tuple[float, float] = (0.6, 1.6)
    pauses: tuple[float, float] = (0.2, 0.8)
    misses: tuple[Miss, Miss, Miss, Miss] = (
        Miss(0.75, 0.012, 0.045),
        Miss(0.8, 0.004, 0.020),
        Miss(0.6, 0.001, 0.005),
        Miss(0.6, 0.008, 0.030),
    )
    near: tuple[float, float] = (0.012, 0.030)
    closed_width: float = 0.0
    open_width: float = 0.085
    rotation_6d: tuple[float, ...] = DOWN_6D
    frame_id: str = "base"
    reach_min: tuple[float, float, float] = (0.34, -0.28, 0.05)
    reach_max: tuple[float, float, float] = (0.64, 0.30, 0.44)

    def __post_init__(self) -> None:
        speeds = [f"{name}_speed" for name in ("approach", "descend", "carry", "lower", "retreat", "max")]
        for name in (*speeds, "acceleration", "jerk", "correction"):
            check_positive("picking", name, getattr(self, name), ValueError)
        for name in ("blend", "close_lead", "grasp", "release_lead", "release", "hold"):
            check_range("picking", name, getattr(self, name), 0, 10, ValueError, "s")
        for name in ("speed_factors", "pauses", "near"):
            low, high = getattr(self, name)
            if not 0 < low <= high <= 10:
                raise ValueError(f"picking: {name} are {low} to {high}; valid is 0 < min <= max <= 10")
        if not 0 <= self.closed_width < self.open_width <= 0.2:
            raise ValueError(
                f"picking: closed_width {self.closed_width} and open_width {self.open_width} m; "
                "valid is 0 <= closed < open <= 0.2"
            )
        if len(self.rotation_6d) != 6:
            raise ValueError(f"picking: rotation_6d has {len(self.rotation_6d)} numbers; valid are 6")


Offset = tuple[float, float]
STRAIGHT_ON: Final[Offset] = (0.0, 0.0)


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
    if style not in PICKING_STYLES:
        raise BidError(f"demonstration style is '{style}'; valid are {', '.join(PICKING_STYLES)}")
    if seed < 0:
        raise BidError(f"demonstration seed is {seed}; valid is 0 or more")
    if style == "clean":
        return PickingManner("straight", "straight", 1.0, (0.0, 0.0), (0.0, 0.0, 0.0, 0.0), config.blend)
    random = np.random.default_rng(seed)
    pauses = np.zeros(4)
    places = random.permutation(4)[: random.integers(0, 3)]
    pauses[places] = random.uniform(*config.pauses, size=len(places))
    before, middle, over_cup, over_saucer = pauses.tolist()
    first, second, third, fourth = config.misses
    return PickingManner(
        # Back to the cup it is only a hand's breadth.
        approach=STRATEGIES[int(random.integers(len(STRATEGIES)))] if style != RECOVER else "straight",
        carry=STRATEGIES[int(random.integers(len(STRATEGIES)))],
        speed=float(np.exp(random.uniform(*np.log(config.speed_factors)))),
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

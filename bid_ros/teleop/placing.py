"""Geometry, styles and paths of the scripted placing demonstrations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.checks import check_positive, check_range
from bid_ros.errors import BidError
from bid_ros.rotation import DOWN_6D

Array = NDArray[np.float64]
STYLES: Final = ("clean", "diverse")
STRATEGIES: Final = ("straight", "high", "left", "right", "low")


@dataclass(frozen=True)
class PlacingGeometry:
    """Sizes of the placing task in m. Heights are over the table, on which the cup stands.

    Attributes:
        table_height: z of the table's top in the base frame.
        cup_height: of the rim.
        cup_radius: outer, of the rim.
        object_radius: of the held object.
        object_below_tool: from the tool, which is between the fingertips, down to the end of the held object.
        clearance: of the object's end over the rim where the descent begins.
        release_depth: of the object's end below the rim where the gripper opens.
        retreat: of the tool upwards after the release.
    """

    table_height: float = 0.0
    cup_height: float = 0.070
    cup_radius: float = 0.033
    object_radius: float = 0.020
    object_below_tool: float = 0.068
    clearance: float = 0.050
    release_depth: float = 0.030
    retreat: float = 0.100

    def __post_init__(self) -> None:
        for name in ("cup_height", "cup_radius", "object_radius", "object_below_tool", "clearance", "retreat"):
            if not 0 < getattr(self, name) <= 0.5:
                raise ValueError(f"placing: {name} is {getattr(self, name)} m; valid is above 0, up to 0.5")
        if not 0 <= self.release_depth < self.cup_height:
            raise ValueError(
                f"placing: release_depth is {self.release_depth} m; valid is 0 up to the cup's height {self.cup_height}"
            )
        check_range("placing", "table_height", self.table_height, -1, 1, ValueError, "m")

    @property
    def rim_z(self) -> float:
        """Height in m of the tool at which the object's end is level with the rim, base frame."""
        return self.table_height + self.cup_height + self.object_below_tool

    @property
    def above_z(self) -> float:
        """Height in m of the tool over the cup before the descent, base frame."""
        return self.rim_z + self.clearance

    @property
    def release_z(self) -> float:
        """Height in m of the tool at which the gripper opens, base frame."""
        return self.rim_z - self.release_depth


@dataclass(frozen=True)
class Miss:
    """In which share of the diverse demonstrations there is a miss, and from ``low`` to ``high`` m how large it is."""

    share: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and 0 < self.low <= self.high <= 0.1):
            raise ValueError(f"placing: a miss is {self}; valid is a share of 0 to 1 and 0 < low <= high <= 0.1 m")

    def draw(self, random: np.random.Generator) -> tuple[float, float]:
        """Return where it goes, (x, y) in m; (0, 0) if there is none."""
        angle, radius = random.uniform(0.0, 2 * np.pi), random.uniform(self.low, self.high)
        if random.uniform() >= self.share:
            return 0.0, 0.0
        return float(radius * np.cos(angle)), float(radius * np.sin(angle))


@dataclass(frozen=True)
class PlacingConfig:
    """How the scripted teleoperator moves.

    Attributes:
        geometry: sizes.
        carry_speed, lower_speed, retreat_speed: peak speeds of a clean demonstration, m/s.
        max_speed: no peak is above it, m/s.
        acceleration, jerk: peaks, m/s^2 and m/s^3.
        correction: factor on both in corrections over the cup. How fast these are decides how far a policy that
            learned from them stays behind a cup that moves.
        blend: s by which the next move may begin before the one before it has come to rest.
        release: s at rest between the end of the descent and the retreat.
        release_lead: s before the end of the descent at which the gripper is told to open. An operator who waits for
            the tool to rest teaches that opening is always a little later, and a policy that replans at rest waits
            for ever.
        hold: s at rest at the end.
        speed_factors: range of the diverse style's factor on every speed.
        pauses: range of its idle pauses, s.
        misses: how far beside the cup's axis most diverse demonstrations are, and correct it: where the way to the
            cup ends, on the descent down to the rim, and inside the cup. Without them the tool is always over the cup
            when it is low, and a policy has no reason to look.
        near: range of the height of the object's end over the rim down to which the second miss is corrected, m.
        closed_width, open_width: asked of the gripper, m. 0 squeezes whatever is between the fingers.
        rotation_6d: of the tool, all the way.
        frame_id: frame of the chunks.
        reach_min, reach_max: corners of the box that detours stay in, m.
    """

    geometry: PlacingGeometry = field(default_factory=PlacingGeometry)
    carry_speed: float = 0.20
    lower_speed: float = 0.14
    retreat_speed: float = 0.16
    max_speed: float = 0.24
    acceleration: float = 1.2
    jerk: float = 20.0
    correction: float = 2.5
    blend: float = 0.35
    release: float = 0.45
    release_lead: float = 0.2
    hold: float = 0.7
    speed_factors: tuple[float, float] = (0.6, 1.6)
    pauses: tuple[float, float] = (0.2, 1.0)
    misses: tuple[Miss, Miss, Miss] = (Miss(0.75, 0.012, 0.045), Miss(0.8, 0.004, 0.020), Miss(0.6, 0.001, 0.005))
    near: tuple[float, float] = (0.012, 0.030)
    closed_width: float = 0.0
    open_width: float = 0.08
    rotation_6d: tuple[float, ...] = DOWN_6D
    frame_id: str = "base"
    reach_min: tuple[float, float, float] = (0.34, -0.26, 0.05)
    reach_max: tuple[float, float, float] = (0.66, 0.26, 0.50)

    def __post_init__(self) -> None:
        for name in ("carry_speed", "lower_speed", "retreat_speed", "max_speed", "acceleration", "jerk", "correction"):
            check_positive("placing", name, getattr(self, name), ValueError)
        for name in ("blend", "release", "release_lead", "hold"):
            check_range("placing", name, getattr(self, name), 0, 10, ValueError, "s")
        for name in ("speed_factors", "pauses", "near"):
            low, high = getattr(self, name)
            if not 0 < low <= high <= 10:
                raise ValueError(f"placing: {name} are {low} to {high}; valid is 0 < min <= max <= 10")
        if len(self.rotation_6d) != 6:
            raise ValueError(f"placing: rotation_6d has {len(self.rotation_6d)} numbers; valid are 6")


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
    if style not in STYLES:
        raise BidError(f"demonstration style is '{style}'; valid are {', '.join(STYLES)}")
    if seed < 0:
        raise BidError(f"demonstration seed is {seed}; valid is 0 or more")
    if style == "clean":
        return Manner("straight", 1.0, 0.0, (0.0, 0.0, 0.0), config.blend)
    random = np.random.default_rng(seed)
    pauses = np.zeros(3)
    places = random.permutation(3)[: random.integers(0, 3)]
    pauses[places] = random.uniform(*config.pauses, size=len(places))
    return Manner(
        strategy=STRATEGIES[int(random.integers(len(STRATEGIES)))],
        speed=float(np.exp(random.uniform(*np.log(config.speed_factors)))),
        detour=float(random.uniform(0.06, 0.12)),
        pauses=(float(pauses[0]), float(pauses[1]), float(pauses[2])),
        blend=float(random.uniform(0.0, config.blend)),
        misses=(config.misses[0].draw(random), config.misses[1].draw(random), config.misses[2].draw(random)),
        near=float(random.uniform(*config.near)),
        late=float(random.uniform()),
    )


def carry_points(start: Array, cup: Array, manner: Manner, config: PlacingConfig) -> Array:
    """Return start, middle and end ``(3, 3)`` of the way from ``start`` (3,) to a place straight above the cup (2,)."""
    above = np.array([cup[0], cup[1], config.geometry.above_z])
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
        away = config.geometry.cup_radius + config.geometry.object_radius + manner.detour
        middle = np.append(above[:2] - away * forward, above[2] - 0.8 * config.geometry.clearance)
    else:
        side = {"straight": 0.0, "left": manner.detour, "right": -manner.detour}[manner.strategy]
        middle = 0.5 * (start + above) + side * np.array([-forward[1], forward[0], 0.0])
    return np.stack([start, np.clip(middle, config.reach_min, config.reach_max), end])

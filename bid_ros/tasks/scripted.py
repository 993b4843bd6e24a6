"""What scripted demonstrations of every task share: how they move, and how much one differs from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.control.trajectory import Array, MotionLimits, Move
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import DOWN_6D

STYLES: Final = ("clean", "diverse")
INSERT_LEAD_S: Final = 0.1  # by which the last part of a descent begins before the one before it has come to rest
Offset = tuple[float, float]
STRAIGHT_ON: Final[Offset] = (0.0, 0.0)


@dataclass(frozen=True)
class Miss:
    """In which share of the diverse demonstrations there is a miss, and from ``low`` to ``high`` m how large it is."""

    share: float
    low: float
    high: float

    def draw(self, random: np.random.Generator) -> Offset:
        """Return where it goes, (x, y) in m; (0, 0) if there is none."""
        angle, radius = random.uniform(0.0, 2 * np.pi), random.uniform(self.low, self.high)
        if random.uniform() >= self.share:
            return STRAIGHT_ON
        return float(radius * np.cos(angle)), float(radius * np.sin(angle))


@dataclass(frozen=True)
class ScriptedConfig:
    """How a scripted teleoperator moves; those of the tasks add their own speeds, heights and misses.

    Attributes:
        clearance: m over the rim where the descent begins.
        carry_speed, lower_speed, retreat_speed: peaks of a clean demonstration, m/s.
        max_speed: no peak is above it, m/s.
        acceleration, jerk: peaks, m/s^2 and m/s^3.
        correction: factor on both in corrections on the descent. How fast these are decides how far a policy that
            learned from them stays behind a cup that moves.
        blend: s by which the next move may begin before the one before it has come to rest.
        hold: s at rest at the end.
        speed_factors: range of the diverse style's factor on every speed.
        pauses: range of its idle pauses, s.
        near: range of the height over the rim down to which a miss is corrected, m.
        closed_width: asked of the gripper, m. 0 squeezes whatever is between the fingers.
        rotation_6d: of the tool, all the way.
        frame_id: frame of the chunks.
    """

    clearance: float = 0.050
    carry_speed: float = 0.20
    lower_speed: float = 0.14
    retreat_speed: float = 0.16
    max_speed: float = 0.24
    acceleration: float = 1.2
    jerk: float = 20.0
    correction: float = 2.5
    blend: float = 0.35
    hold: float = 0.7
    speed_factors: tuple[float, float] = (0.6, 1.6)
    pauses: tuple[float, float] = (0.2, 1.0)
    near: tuple[float, float] = (0.012, 0.030)
    closed_width: float = 0.0
    rotation_6d: tuple[float, ...] = DOWN_6D
    frame_id: str = "base"


class ScriptedMotion(PlannedTeleoperator):
    """Moves of one demonstration.

    Args:
        config: speeds and ranges.
        speed: the demonstration's factor on every speed.
        blend: its overlap between moves without a pause between them, s.
    """

    def __init__(self, config: ScriptedConfig, speed: float, blend: float) -> None:
        super().__init__()
        self._motion, self._speed, self._blend = config, speed, blend

    def _move(self, points: ArrayLike, speed: float, begin_s: float, haste: float = 1.0) -> Move:
        config = self._motion
        peak = min(speed * self._speed, config.max_speed)
        limits = MotionLimits(peak, haste * config.acceleration, haste * config.jerk)
        return Move(points, limits, begin_s, brisk=True)

    def _after(self, move: Move, pause_s: float) -> float:
        """Instant at which the next move begins: after a pause, else a little before this one has come to rest."""
        return move.end_s + pause_s if pause_s else max(move.begin_s, move.end_s - self._blend)

    def _descend(
        self,
        place: Array,
        heights: tuple[float, float, float],
        speed: float,
        beside: Offset,
        inside: Offset,
        late: float,
        begin_s: float,
    ) -> list[Move]:
        """Moves from the first height (m, base frame) to the last, straight over ``place`` (2,) at the end.

        What is ``beside`` (x, y) m at the first height is ``inside`` at the second and gone at the last. The last
        move is the one to the last height.
        """
        over, near, down = (np.append(place, height) for height in heights)
        if beside == STRAIGHT_ON:
            return [self._move([over, down], speed, begin_s)]
        haste = self._motion.correction
        far, close = (np.array([*offset, 0.0]) for offset in (beside, inside))
        approach = self._move([over, near], speed, begin_s)
        correct = self._move([far, close], speed, begin_s + late * (approach.end_s - begin_s), haste)
        insert_s = max(approach.end_s, correct.end_s) - INSERT_LEAD_S
        settle = self._move([close, np.zeros(3)], speed, insert_s + INSERT_LEAD_S, haste)
        return [approach, correct, settle, self._move([near, down], speed, insert_s)]


def check_start(start: Array, places: Array, lowest: float, recovers: bool = False) -> None:
    """Refuse a demonstration that cannot be planned.

    Args:
        start: ``(3,)`` of the tool, m, base frame.
        places: ``(n, 2)`` of what it goes to, m, base frame.
        lowest: height in m of the tool from which on it is over the rim.
        recovers: the demonstration may begin below.

    Raises:
        BidError: a position is not finite, or the tool is too low.
    """
    if not (np.isfinite(start).all() and np.isfinite(places).all()):
        raise BidError(f"demonstration from {start} to {places.tolist()}; valid are finite positions")
    if start[2] < lowest and not recovers:
        raise BidError(
            f"demonstration starts with the tool at {start[2]:.3f} m; valid is at least {lowest:.3f} m, over the rim"
        )


def check_draw(style: str, seed: int, styles: tuple[str, ...]) -> None:
    """Raise BidError unless the style is one of ``styles`` and the seed 0 or more."""
    if style not in styles:
        raise BidError(f"demonstration style is '{style}'; valid are {', '.join(styles)}")
    if seed < 0:
        raise BidError(f"demonstration seed is {seed}; valid is 0 or more")


def draw_pauses(random: np.random.Generator, places: int, pauses: tuple[float, float]) -> list[float]:
    """Return a pause in s at each of so many places: none at most of them, drawn from the range at up to two."""
    drawn = np.zeros(places)
    chosen = random.permutation(places)[: random.integers(0, 3)]
    drawn[chosen] = random.uniform(*pauses, size=len(chosen))
    found: list[float] = drawn.tolist()
    return found


def draw_speed(random: np.random.Generator, factors: tuple[float, float]) -> float:
    """Return a factor on speeds, drawn evenly on a logarithmic scale."""
    return float(np.exp(random.uniform(*np.log(factors))))

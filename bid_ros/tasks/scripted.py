"""What scripted demonstrations of every task share: how they move, and how much one differs from another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.control.trajectory import Array, MotionLimits, Move, Trajectory
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import DOWN_6D

STYLES: Final = ("clean", "diverse")
RECOVER: Final = "recover"
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
        retreat: of the tool upwards after the release, m.
        release: s at rest between the end of the descent and the retreat.
        release_lead: s before the end of the descent at which the gripper is told to open. An operator who waits for
            the tool to rest teaches that opening is always a little later, and a policy that replans at rest waits
            for ever.
        styles: of the demonstrations.
        strategies: a diverse demonstration draws one for each of its ways.
        detours: range for each way, m by which it leaves the straight line.
        misses: how far beside its goal most diverse demonstrations are, and correct it. Without them the tool is
            always over the goal when it is low, and a policy has no reason to look. There may be an idle pause in as
            many places.
        closed_width, open_width: asked of the gripper, m. 0 squeezes whatever is between the fingers.
        reach_min, reach_max: corners of the box that detours stay in, m.
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
    retreat: float = 0.100
    release: float = 0.45
    release_lead: float = 0.2
    styles: tuple[str, ...] = STYLES
    strategies: tuple[str, ...] = ("straight", "high", "left", "right")
    detours: tuple[tuple[float, float], ...] = ()
    misses: tuple[Miss, ...] = (Miss(0.75, 0.012, 0.045), Miss(0.8, 0.004, 0.020), Miss(0.6, 0.001, 0.005))
    closed_width: float = 0.0
    open_width: float = 0.0
    reach_min: tuple[float, float, float] = (-np.inf, -np.inf, -np.inf)
    reach_max: tuple[float, float, float] = (np.inf, np.inf, np.inf)


@dataclass(frozen=True)
class Manner:
    """What one demonstration does: the outcome of the draws.

    Attributes:
        strategies: of its ways.
        speed: factor on every speed.
        detours: m by which the ways leave the straight line.
        pauses: s of rest in as many places as there are misses, the middle of the first way among them.
        blend: s of overlap between moves without a pause between them.
        misses: m (x, y) beside the goals, base frame.
        near: m over the goals of the descents at which a miss has been corrected.
        late: shares of the descents to there after which that correction begins.
    """

    strategies: tuple[str, ...]
    speed: float
    detours: tuple[float, ...]
    pauses: tuple[float, ...]
    blend: float
    misses: tuple[Offset, ...]
    near: tuple[float, ...]
    late: tuple[float, ...]


class DemonstrationPart(NamedTuple):
    """Part of a demonstration: its moves, the gripper's widths (begin in s, m) and its phases (begin in s, name)."""

    moves: Sequence[Move]
    widths: Sequence[tuple[float, float]]
    phases: Sequence[tuple[float, str]]


class ScriptedMotion(PlannedTeleoperator):
    """Moves of one demonstration.

    Args:
        style: one of ``config.styles``.
        seed: seed of the random draws. ``clean`` has none.

    Attributes:
        config: speeds and ranges of the task.
        manner: what was drawn.

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    config: ScriptedConfig

    def __init__(self, style: str, seed: int) -> None:
        super().__init__()
        self._style, self._seed, self.manner = style, seed, draw_manner(style, seed, self.config)

    def _move(self, points: ArrayLike, speed: float, begin_s: float, haste: float = 1.0) -> Move:
        config = self.config
        peak = min(speed * self.manner.speed, config.max_speed)
        limits = MotionLimits(peak, haste * config.acceleration, haste * config.jerk)
        return Move(points, limits, begin_s, brisk=True)

    def _after(self, move: Move, pause_s: float) -> float:
        """Instant at which the next move begins: after a pause, else a little before this one has come to rest."""
        return move.end_s + pause_s if pause_s else max(move.begin_s, move.end_s - self.manner.blend)

    def _way(self, points: Array, speed: float, begin_s: float, pause_s: float, sharp: bool = False) -> list[Move]:
        """Moves through start, middle and end. One move passes the middle, unless it is sharp or the tool pauses."""
        if not pause_s and not sharp:
            return [self._move(points, speed, begin_s)]
        first = self._move(points[:2], speed, begin_s)
        return [first, self._move(points[1:], speed, self._after(first, pause_s))]

    def _correct(self, ways: list[Move], cup: Array, height: float, speed: float) -> float:
        """Add the correction of a first miss at a height over the cup to the ways. Return when the descent begins."""
        missed, left = self.manner.misses[:2]
        pause_s = self.manner.pauses[2]
        if missed != STRAIGHT_ON:
            points = [np.append(cup + np.array(miss), height) for miss in (missed, left)]
            ways.append(self._move(points, speed, self._after(ways[-1], pause_s)))
            pause_s = 0.0
        return self._after(ways[-1], pause_s)

    def _arrival(self, cup: Array) -> Array:
        """Where the first way ends, ``(2,)`` m: beside the cup by the first miss that the demonstration has."""
        missed, left = self.manner.misses[:2]
        place: Array = cup + np.array(left if missed == STRAIGHT_ON else missed)
        return place

    def _let_go(self, descent: list[Move], lower_s: float) -> tuple[DemonstrationPart, float]:
        """Return the part from a descent at ``lower_s`` on, which opens the gripper at its end, and its end in s."""
        config, down, end_s = self.config, descent[-1].last, descent[-1].end_s
        open_s, up = end_s - config.release_lead, down + np.array([0.0, 0.0, config.retreat])
        retreat = self._move([down, up], config.retreat_speed, end_s + config.release)
        phases = [(lower_s, "lower"), (open_s, "release"), (retreat.begin_s, "retreat"), (retreat.end_s, "hold")]
        part = DemonstrationPart([*descent, retreat], [(open_s, config.open_width)], phases)
        return part, retreat.end_s + config.hold

    def _perform(self, start: Array, parts: Sequence[DemonstrationPart], end_s: float, now_ns: int) -> None:
        """Take a plan of these parts, which begins at ``now_ns``."""
        moves, widths, phases = (tuple(chain(*items)) for items in zip(*parts, strict=True))
        trajectory = Trajectory(start, np.array(DOWN_6D), moves, (), widths, end_s)
        self._follow(trajectory, phases, now_ns, "base")

    def _descend(
        self,
        place: Array,
        heights: tuple[float, float, float],
        speed: float,
        misses: Sequence[Offset],
        late: float,
        begin_s: float,
    ) -> list[Move]:
        """Moves from the first height (m, base frame) to the last, straight over ``place`` (2,) at the end.

        What is beside by the first of the ``misses`` (x, y) m at the first height is by the second at the second, and
        gone at the last. The last move is the one to the last height.
        """
        over, near, down = (np.append(place, height) for height in heights)
        beside, inside = misses
        if beside == STRAIGHT_ON:
            return [self._move([over, down], speed, begin_s)]
        haste = self.config.correction
        far, close = (np.array([*offset, 0.0]) for offset in (beside, inside))
        approach = self._move([over, near], speed, begin_s)
        correct = self._move([far, close], speed, begin_s + late * (approach.end_s - begin_s), haste)
        insert_s = max(approach.end_s, correct.end_s) - INSERT_LEAD_S
        settle = self._move([close, np.zeros(3)], speed, insert_s + INSERT_LEAD_S, haste)
        return [approach, correct, settle, self._move([near, down], speed, insert_s)]


def check_start(start: Array, places: Array, lowest: float, recovers: bool = False) -> None:
    """Raise BidError for a demonstration that cannot be planned: a position is not finite, or the tool too low.

    Args:
        start: ``(3,)`` of the tool, m, base frame.
        places: ``(n, 2)`` of what it goes to, m, base frame.
        lowest: height in m of the tool from which on it is over the rim.
        recovers: the demonstration may begin below.
    """
    if not (np.isfinite(start).all() and np.isfinite(places).all()):
        raise BidError(f"demonstration from {start} to {places.tolist()}; valid are finite positions")
    if start[2] < lowest and not recovers:
        raise BidError(
            f"demonstration starts with the tool at {start[2]:.3f} m; valid is at least {lowest:.3f} m, over the rim"
        )


def draw_manner(style: str, seed: int, config: ScriptedConfig) -> Manner:
    """Return what the demonstration with this style and seed does.

    Raises:
        BidError: the style is unknown or the seed negative.
    """
    if style not in config.styles:
        raise BidError(f"demonstration style is '{style}'; valid are {', '.join(config.styles)}")
    if seed < 0:
        raise BidError(f"demonstration seed is {seed}; valid is 0 or more")
    ways, places = len(config.detours), len(config.misses)
    none, straight = (0.0,) * ways, ("straight",) * ways
    if style == "clean":
        return Manner(straight, 1.0, none, (0.0,) * places, config.blend, (STRAIGHT_ON,) * places, none, none)
    random = np.random.default_rng(seed)
    pauses = _draw_pauses(random, places, config.pauses)
    # After a failed grasp it is only a hand's breadth back to the cup.
    direct = straight[: style == RECOVER]
    drawn = (config.strategies[int(random.integers(len(config.strategies)))] for _ in range(len(direct), ways))
    return Manner(
        strategies=(*direct, *drawn),
        speed=float(np.exp(random.uniform(*np.log(config.speed_factors)))),  # evenly on a logarithmic scale
        detours=tuple(float(random.uniform(*limits)) for limits in config.detours),
        pauses=pauses,
        blend=float(random.uniform(0.0, config.blend)),
        misses=tuple(miss.draw(random) for miss in config.misses),
        near=tuple(float(random.uniform(*config.near)) for _ in range(ways)),
        late=tuple(float(random.uniform()) for _ in range(ways)),
    )


def _draw_pauses(random: np.random.Generator, places: int, pauses: tuple[float, float]) -> tuple[float, ...]:
    """Return a pause in s at each of so many places: none at most of them, drawn from the range at up to two."""
    drawn = np.zeros(places)
    chosen = random.permutation(places)[: random.integers(0, 3)]
    drawn[chosen] = random.uniform(*pauses, size=len(chosen))
    return tuple(drawn.tolist())


def way_points(start: Array, end: Array, strategy: str, detour: float, config: ScriptedConfig) -> Array:
    """Return start, middle and end ``(3, 3)`` m of a way from ``start`` (3,) to ``end`` (3,).

    The middle of ``high`` is a ``detour`` over the higher of both, that of ``left`` and ``right`` as far aside.
    """
    along, forward = heading(start, end)
    if strategy == "high":
        middle = np.append(start[:2] + 0.5 * along, max(start[2], end[2]) + detour)
    else:
        side = {"straight": 0.0, "left": detour, "right": -detour}[strategy]
        middle = 0.5 * (start + end) + side * np.array([-forward[1], forward[0], 0.0])
    return np.stack([start, np.clip(middle, config.reach_min, config.reach_max), end])


def heading(start: Array, end: Array) -> tuple[Array, Array]:
    """Return the way ``(2,)`` m over the table between two places, and its direction ``(2,)``."""
    along = end[:2] - start[:2]
    length = float(np.linalg.norm(along))
    # Straight above the end there is no direction to it; any will do.
    return along, along / length if length > 0.01 else np.array([1.0, 0.0])

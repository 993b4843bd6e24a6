"""The scripted picker: looks where cup and saucer are, plans once, and then drives like a person with a joystick."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.errors import BidError
from bid_ros.teleop.picking import (
    RECOVER,
    STRAIGHT_ON,
    Offset,
    PickingConfig,
    PickingManner,
    draw_manner,
    way_points,
)
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.recovery import Recovery, draw_recovery
from bid_ros.teleop.trajectory import MotionLimits, Move, Trajectory

Array = NDArray[np.float64]
Phase = tuple[float, str]
RISE_SAMPLES: Final = 200
INSERT_LEAD_S: Final = 0.1  # by which the last part of a descent begins before the one before it has come to rest


class _Part(NamedTuple):
    """A part of a demonstration: its moves, the widths asked for (s, m) and its phases (s, name)."""

    moves: list[Move]
    widths: list[tuple[float, float]]
    phases: list[Phase]


class ScriptedPicker(PlannedTeleoperator):
    """Goes over the cup and down, closes, lifts, carries the cup over the saucer and down, opens, retreats and holds.

    ``clean`` demonstrations all do the same: straight ways, one speed, no pauses. ``diverse`` ones differ by seed in
    speed, in idle pauses, in how moves are joined, and in the ways to cup and saucer: straight, high, around the left
    or the right. Most of them first arrive beside the cup (or the saucer) and correct it, so that the data show how
    to get back from there. ``recover`` ones are diverse, too, and begin after a grasp that went wrong
    (:meth:`recovery`): with closed, empty fingers, which rise and open before anything else, or with a cup held off its
    middle, which is carried as it is. The phases are ``rise``, ``approach``, ``descend``, ``grasp``, ``lift``,
    ``carry``, ``lower``, ``release``, ``retreat`` and ``hold``.

    Args:
        style: ``clean``, ``diverse`` or ``recover``.
        seed: of the style's draws; ``clean`` has none.
        config: sizes, speeds and ranges.

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    def __init__(self, style: str, seed: int, config: PickingConfig | None = None) -> None:
        super().__init__()
        self._config = config or PickingConfig()
        self._style, self._seed = style, seed
        self._manner = draw_manner(style, seed, self._config)

    @property
    def manner(self) -> PickingManner:
        """What this demonstration does."""
        return self._manner

    def recovery(self, cup: Array, saucer: Array) -> Recovery | None:
        """Return how the demonstration begins with cup and saucer at ``(2,)`` m, base frame; None: as usual."""
        if self._style != RECOVER:
            return None
        config, geometry = self._config, self._config.geometry
        drawn = draw_recovery(self._seed, cup, saucer, geometry.grasp_z, geometry.clear_z)
        place = np.clip(drawn.position, config.reach_min, config.reach_max)
        return replace(drawn, position=np.append(place[:2], drawn.position[2]))

    def plan(self, start_position: ArrayLike, cup_position: ArrayLike, saucer_position: ArrayLike, now_ns: int) -> None:
        """Plan a demonstration that begins at ``now_ns``; an earlier plan is forgotten.

        Args:
            start_position: (3,) of the tool in m, base frame, with the fingertips above the rim unless it recovers.
            cup_position, saucer_position: (2,) or (3,) of their middles in m, base frame; heights are not used.
            now_ns: ROS time.

        Raises:
            BidError: a position is not finite, or the tool is too low to be moved over the cup.
        """
        start = np.asarray(start_position, dtype=np.float64)
        cup, saucer = (np.asarray(place, dtype=np.float64)[:2] for place in (cup_position, saucer_position))
        if not all(np.isfinite(place).all() for place in (start, cup, saucer)):
            raise BidError(
                f"demonstration from {start} to the cup at {cup} and the saucer at {saucer}; valid are finite positions"
            )
        if start[2] < self._config.geometry.rim_z and self._style != RECOVER:
            raise BidError(
                f"demonstration starts with the tool at {start[2]:.3f} m; "
                f"valid is at least {self._config.geometry.rim_z:.3f} m, where the fingers are over the rim"
            )
        trajectory, phases = self._build(start, cup, saucer)
        self._follow(trajectory, phases, now_ns, self._config.frame_id)

    def _build(self, start: Array, cup: Array, saucer: Array) -> tuple[Trajectory, list[Phase]]:
        recovery = self.recovery(cup, saucer)
        if recovery is not None and recovery.held:
            # It is put where the cup, not the tool, is over the saucer.
            saucer = saucer + start[:2] - cup
            cup, lift_s, picks = start[:2], 0.0, _Part([], [(0.0, self._config.closed_width)], [])
        else:
            picks, lift_s = self._pick(start, cup, recovery is not None)
        puts, end_s = self._put(cup, saucer, lift_s)
        trajectory = Trajectory(
            position=start,
            rotation_6d=np.array(self._config.rotation_6d),
            moves=(*picks.moves, *puts.moves),
            turns=(),
            widths=(*picks.widths, *puts.widths),
            duration_s=end_s,
        )
        return trajectory, [*picks.phases, *puts.phases]

    def _pick(self, start: Array, cup: Array, missed: bool) -> tuple[_Part, float]:
        """Everything until the fingers hold the cup, and when that is."""
        config = self._config
        rises, open_s = self._rise(start) if missed else ([], 0.0)
        top, begin_s = (rises[-1].last, self._after(rises[-1], 0.0)) if rises else (start, 0.0)
        ways, descend_s = self._arrive(top, cup, begin_s)
        descent = self._descend_on_cup(cup, descend_s)
        close_s = descent[-1].end_s - config.close_lead
        widths = [(open_s, config.open_width), (close_s, config.closed_width)]
        phases = [(begin_s, "approach"), (descend_s, "descend"), (close_s, "grasp")]
        if missed:
            widths.insert(0, (0.0, config.closed_width))
            phases.insert(0, (0.0, "rise"))
        return _Part([*rises, *ways, *descent], widths, phases), descent[-1].end_s + config.grasp

    def _put(self, cup: Array, saucer: Array, lift_s: float) -> tuple[_Part, float]:
        """Everything from the lift on, and when it is over."""
        config = self._config
        carries, lower_s = self._carry(cup, saucer, lift_s)
        lowering = self._descend_on_saucer(saucer, lower_s)
        retreat = self._retreat(saucer, lowering[-1].end_s + config.release)
        open_s = lowering[-1].end_s - config.release_lead
        phases = [
            (lift_s, "lift"),
            (carries[1].begin_s, "carry"),
            (lower_s, "lower"),
            (open_s, "release"),
            (retreat.begin_s, "retreat"),
            (retreat.end_s, "hold"),
        ]
        part = _Part([*carries, *lowering, retreat], [(open_s, config.open_width)], phases)
        return part, retreat.end_s + config.hold

    def _rise(self, start: Array) -> tuple[list[Move], float]:
        """The move straight up from where a grasp missed, and when the fingers open: well over the rim."""
        geometry = self._config.geometry
        top = np.array([start[0], start[1], max(start[2], geometry.above_z)])
        rise = self._move([start, top], self._config.carry_speed, 0.0)
        times = np.linspace(rise.begin_s, rise.end_s, RISE_SAMPLES)
        over = start[2] + rise.displacement(times)[:, 2] >= geometry.clear_z
        return [rise], float(times[int(np.argmax(over))])

    def _arrive(self, start: Array, cup: Array, begin_s: float) -> tuple[list[Move], float]:
        """Moves to the place where the descent begins, and when that is: approach, pause, and correct a miss."""
        config, manner, height = self._config, self._manner, self._config.geometry.above_z
        missed, left = (np.array(miss) for miss in manner.misses[:2])
        end = np.append(cup + (missed if missed.any() else left), height)
        points = way_points(start, end, manner.approach, manner.detours[0], config)
        before, middle, pause_s, _ = manner.pauses
        begin_s += before
        if middle:
            first = self._move(points[:2], config.approach_speed, begin_s)
            ways = [first, self._move(points[1:], config.approach_speed, self._after(first, middle))]
        else:
            ways = [self._move(points, config.approach_speed, begin_s)]
        if missed.any():
            correction = [end, np.append(cup + left, height)]
            ways.append(self._move(correction, config.descend_speed, self._after(ways[-1], pause_s)))
            pause_s = 0.0
        return ways, self._after(ways[-1], pause_s)

    def _descend_on_cup(self, cup: Array, begin_s: float) -> list[Move]:
        """Moves down to the grasp; a miss is corrected over the rim, and its rest on either side of the cup."""
        geometry, (_, beside, inside, _) = self._config.geometry, self._manner.misses
        heights = (geometry.above_z, geometry.rim_z + self._manner.near[0], geometry.grasp_z)
        return self._descend(cup, heights, self._config.descend_speed, beside, inside, self._manner.late[0], begin_s)

    def _descend_on_saucer(self, saucer: Array, begin_s: float) -> list[Move]:
        """Moves down to the release; a miss is corrected before the cup is down."""
        geometry, beside = self._config.geometry, self._manner.misses[3]
        heights = (geometry.carry_z, geometry.release_z + self._manner.near[1], geometry.release_z)
        speed, late = self._config.lower_speed, self._manner.late[1]
        return self._descend(saucer, heights, speed, beside, STRAIGHT_ON, late, begin_s)

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
        haste = self._config.correction
        far, close = (np.array([*offset, 0.0]) for offset in (beside, inside))
        approach = self._move([over, near], speed, begin_s)
        correct = self._move([far, close], speed, begin_s + late * (approach.end_s - begin_s), haste)
        insert_s = max(approach.end_s, correct.end_s) - INSERT_LEAD_S
        settle = self._move([close, np.zeros(3)], speed, insert_s + INSERT_LEAD_S, haste)
        return [approach, correct, settle, self._move([near, down], speed, insert_s)]

    def _carry(self, cup: Array, saucer: Array, lift_s: float) -> tuple[list[Move], float]:
        """The lift and the way to the saucer, and when the cup is lowered there."""
        config, manner, geometry = self._config, self._manner, self._config.geometry
        down, up = np.append(cup, geometry.grasp_z), np.append(cup, geometry.carry_z)
        lift = self._move([down, up], config.carry_speed, lift_s)
        end = np.append(saucer + np.array(manner.misses[3]), geometry.carry_z)
        points = way_points(up, end, manner.carry, manner.detours[1], config)
        carry = self._move(points, config.carry_speed, self._after(lift, 0.0))
        return [lift, carry], self._after(carry, manner.pauses[3])

    def _retreat(self, saucer: Array, begin_s: float) -> Move:
        geometry = self._config.geometry
        down, up = (np.append(saucer, geometry.release_z + height) for height in (0.0, geometry.retreat))
        return self._move([down, up], self._config.retreat_speed, begin_s)

    def _move(self, points: ArrayLike, speed: float, begin_s: float, haste: float = 1.0) -> Move:
        config = self._config
        peak = min(speed * self._manner.speed, config.max_speed)
        limits = MotionLimits(peak, haste * config.acceleration, haste * config.jerk)
        return Move(points, limits, begin_s, brisk=True)

    def _after(self, move: Move, pause_s: float) -> float:
        """Instant at which the next move begins: after a pause, else a little before this one has come to rest."""
        return move.end_s + pause_s if pause_s else max(move.begin_s, move.end_s - self._manner.blend)

"""The scripted picker: reads the poses of cup and saucer, plans once, and moves like a person with a joystick."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.trajectory import Move, Trajectory
from bid_ros.tasks.picking.geometry import GRASP_TOOL_HEIGHT, RIM_Z
from bid_ros.tasks.picking.recovery import Recovery, draw_recovery
from bid_ros.tasks.picking.styles import (
    RECOVER,
    PickingConfig,
    PickingManner,
    draw_manner,
    way_points,
)
from bid_ros.tasks.scripted import STRAIGHT_ON, ScriptedMotion, check_start

Array = NDArray[np.float64]
Phase = tuple[float, str]
RISE_SAMPLES: Final = 200


class _Part(NamedTuple):
    """A part of a demonstration: its moves, the widths asked for (s, m) and its phases (s, name)."""

    moves: list[Move]
    widths: list[tuple[float, float]]
    phases: list[Phase]


class ScriptedPicker(ScriptedMotion):
    """Goes over the cup and down, closes, lifts, carries the cup over the saucer and down, opens, retreats and holds.

    ``clean`` demonstrations are all alike: straight paths, one speed, no pauses. ``diverse`` ones differ by seed in
    speed, idle pauses, joins of moves, and paths to cup and saucer: straight, high, around the left or the right. Most
    of them first arrive beside the cup (or the saucer) and correct that. So the data show how to recover from there.
    ``recover`` ones are diverse too. They begin after a failed grasp (:meth:`recovery`): with closed, empty fingers,
    which first rise and open, or with a cup held off its middle, which is carried as it is. The phases are ``rise``,
    ``approach``, ``descend``, ``grasp``, ``lift``, ``carry``, ``lower``, ``release``, ``retreat`` and ``hold``.

    Args:
        style: ``clean``, ``diverse`` or ``recover``.
        seed: seed of the random draws. ``clean`` has none.
        config: sizes, speeds and ranges.

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    def __init__(self, style: str, seed: int, config: PickingConfig | None = None) -> None:
        self._config = config or PickingConfig()
        self._style, self._seed = style, seed
        self._manner = draw_manner(style, seed, self._config)
        super().__init__(self._config, self._manner.speed, self._manner.blend)

    @property
    def manner(self) -> PickingManner:
        """The random choices of this demonstration."""
        return self._manner

    def recovery(self, cup: Array, saucer: Array) -> Recovery | None:
        """Return the start state with cup and saucer at ``(2,)`` m, base frame. None: the usual start."""
        if self._style != RECOVER:
            return None
        config = self._config
        drawn = draw_recovery(self._seed, cup, saucer, GRASP_TOOL_HEIGHT, config.clear_z)
        place = np.clip(drawn.position, config.reach_min, config.reach_max)
        return replace(drawn, position=np.append(place[:2], drawn.position[2]))

    def plan(self, start_position: ArrayLike, cup_position: ArrayLike, saucer_position: ArrayLike, now_ns: int) -> None:
        """Plan a demonstration that begins at ``now_ns``. It replaces an earlier plan.

        Args:
            start_position: (3,) of the tool in m, base frame, with the fingertips above the rim unless it recovers.
            cup_position, saucer_position: (2,) or (3,) of their middles in m, base frame; heights are not used.
            now_ns: ROS time.

        Raises:
            BidError: a position is not finite, or the tool is too low to be moved over the cup.
        """
        start = np.asarray(start_position, dtype=np.float64)
        cup, saucer = (np.asarray(place, dtype=np.float64)[:2] for place in (cup_position, saucer_position))
        check_start(start, np.array([cup, saucer]), RIM_Z, recovers=self._style == RECOVER)
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
        """Return the moves until the fingers hold the cup, and that time."""
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
        """Return the moves from the lift on, and the time of their end."""
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
        config = self._config
        top = np.array([start[0], start[1], max(start[2], config.above_z)])
        rise = self._move([start, top], self._config.carry_speed, 0.0)
        times = np.linspace(rise.begin_s, rise.end_s, RISE_SAMPLES)
        over = start[2] + rise.displacement(times)[:, 2] >= config.clear_z
        return [rise], float(times[int(np.argmax(over))])

    def _arrive(self, start: Array, cup: Array, begin_s: float) -> tuple[list[Move], float]:
        """Return the moves to the start of the descent, and its time: approach, pause, and correct a miss."""
        config, manner, height = self._config, self._manner, self._config.above_z
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
        config, (_, beside, inside, _) = self._config, self._manner.misses
        heights = (config.above_z, RIM_Z + self._manner.near[0], GRASP_TOOL_HEIGHT)
        return self._descend(cup, heights, self._config.descend_speed, beside, inside, self._manner.late[0], begin_s)

    def _descend_on_saucer(self, saucer: Array, begin_s: float) -> list[Move]:
        """Moves down to the release; a miss is corrected before the cup is down."""
        config, beside = self._config, self._manner.misses[3]
        heights = (config.carry_z, config.release_z + self._manner.near[1], config.release_z)
        speed, late = self._config.lower_speed, self._manner.late[1]
        return self._descend(saucer, heights, speed, beside, STRAIGHT_ON, late, begin_s)

    def _carry(self, cup: Array, saucer: Array, lift_s: float) -> tuple[list[Move], float]:
        """The lift and the way to the saucer, and when the cup is lowered there."""
        config, manner = self._config, self._manner
        down, up = np.append(cup, GRASP_TOOL_HEIGHT), np.append(cup, config.carry_z)
        lift = self._move([down, up], config.carry_speed, lift_s)
        end = np.append(saucer + np.array(manner.misses[3]), config.carry_z)
        points = way_points(up, end, manner.carry, manner.detours[1], config)
        carry = self._move(points, config.carry_speed, self._after(lift, 0.0))
        return [lift, carry], self._after(carry, manner.pauses[3])

    def _retreat(self, saucer: Array, begin_s: float) -> Move:
        config = self._config
        down, up = (np.append(saucer, config.release_z + height) for height in (0.0, config.retreat))
        return self._move([down, up], self._config.retreat_speed, begin_s)

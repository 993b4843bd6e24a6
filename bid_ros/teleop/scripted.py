"""The scripted teleoperator: looks where the cup is, plans once, and then drives like a person with a joystick."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.errors import BidError
from bid_ros.teleop.placing import Manner, PlacingConfig, carry_points, draw_manner
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.trajectory import MotionLimits, Move, Trajectory

Array = NDArray[np.float64]
INSERT_LEAD_S = 0.1  # by which the way into the cup begins before the one to its rim has come to rest


class ScriptedTeleoperator(PlannedTeleoperator):
    """Carries the held object over the cup, lowers it straight in, opens, retreats upwards and holds.

    ``clean`` demonstrations all do the same: straight to the cup, one speed, no pauses. ``diverse`` ones differ by
    seed in speed, in idle pauses, in how moves are joined, and in the way to the cup: straight, high over it, around
    the left or the right, or low beside it and then over (the paper's clean and diverse data). Most of them first
    arrive beside the cup and correct it, so that the data show how to get back from there. The phases are ``carry``,
    ``lower``, ``release``, ``retreat`` and ``hold``.

    Args:
        style: ``clean`` or ``diverse``.
        seed: of the style's draws; ``clean`` has none.
        config: sizes, speeds and ranges.

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    def __init__(self, style: str, seed: int, config: PlacingConfig | None = None) -> None:
        super().__init__()
        self._config = config or PlacingConfig()
        self._manner = draw_manner(style, seed, self._config)

    @property
    def manner(self) -> Manner:
        """What this demonstration does."""
        return self._manner

    def plan(self, start_position: ArrayLike, cup_position: ArrayLike, now_ns: int) -> None:
        """Plan a demonstration that begins at ``now_ns``; an earlier plan is forgotten.

        Args:
            start_position: (3,) of the tool in m, base frame, with the object's end above the rim.
            cup_position: (2,) or (3,) of the cup's axis in m, base frame; its height is not used.
            now_ns: ROS time.

        Raises:
            BidError: a position is not finite, or the tool is too low to be carried over the rim.
        """
        start = np.asarray(start_position, dtype=np.float64)
        cup = np.asarray(cup_position, dtype=np.float64)[:2]
        if not (np.isfinite(start).all() and np.isfinite(cup).all()):
            raise BidError(f"demonstration from {start} to the cup at {cup}; valid are finite positions")
        if start[2] < self._config.geometry.rim_z:
            raise BidError(
                f"demonstration starts with the tool at {start[2]:.3f} m; "
                f"valid is at least {self._config.geometry.rim_z:.3f} m, where the object is over the rim"
            )
        trajectory, phases = self._build(start, cup)
        self._follow(trajectory, phases, now_ns, self._config.frame_id)

    def _build(self, start: Array, cup: Array) -> tuple[Trajectory, list[tuple[float, str]]]:
        config, geometry = self._config, self._config.geometry
        ways, begin_s = self._arrive(start, cup)
        descent = self._descend(cup, begin_s)
        down, end_s = np.append(cup, geometry.release_z), descent[-1].end_s
        open_s = end_s - config.release_lead
        up = down + np.array([0.0, 0.0, geometry.retreat])
        retreat = self._move([down, up], config.retreat_speed, end_s + config.release)
        trajectory = Trajectory(
            position=start,
            rotation_6d=np.array(config.rotation_6d),
            moves=(*ways, *descent, retreat),
            turns=(),
            widths=((0.0, config.closed_width), (open_s, config.open_width)),
            duration_s=retreat.end_s + config.hold,
        )
        phases = [
            (0.0, "carry"),
            (begin_s, "lower"),
            (open_s, "release"),
            (retreat.begin_s, "retreat"),
            (retreat.end_s, "hold"),
        ]
        return trajectory, phases

    def _arrive(self, start: Array, cup: Array) -> tuple[list[Move], float]:
        """Moves to the place where the descent begins, and when that is: carry, pause, and correct a miss."""
        config, height = self._config, self._config.geometry.above_z
        missed, left = (np.array(miss) for miss in self._manner.misses[:2])
        first = missed if missed.any() else left
        ways = self._carry(carry_points(start, cup + first, self._manner, config))
        if self._manner.strategy == "high":
            sink = [ways[-1].last, np.append(cup + first, height)]
            ways.append(self._move(sink, config.carry_speed, self._after(ways[-1], 0.0)))
        pause_s = self._manner.pauses[2]
        if missed.any():
            correction = [np.append(cup + missed, height), np.append(cup + left, height)]
            ways.append(self._move(correction, config.lower_speed, self._after(ways[-1], pause_s)))
            pause_s = 0.0
        return ways, self._after(ways[-1], pause_s)

    def _descend(self, cup: Array, begin_s: float) -> list[Move]:
        """Moves down to the release; what is beside the axis is corrected over the rim, and its rest inside the cup.

        The last move is the one down into the cup.
        """
        config, geometry, speed = self._config, self._config.geometry, self._config.lower_speed
        beside, inside = (np.array([*miss, 0.0]) for miss in self._manner.misses[1:])
        over, down = np.append(cup, geometry.above_z), np.append(cup, geometry.release_z)
        if not beside.any():
            return [self._move([over, down], speed, begin_s)]
        near = np.append(cup, geometry.rim_z + self._manner.near)
        approach = self._move([over, near], speed, begin_s)
        correct_s = begin_s + self._manner.late * (approach.end_s - begin_s)
        correct = self._move([beside, inside], speed, correct_s, config.correction)
        insert_s = max(approach.end_s, correct.end_s) - INSERT_LEAD_S
        settle = self._move([inside, np.zeros(3)], speed, insert_s + INSERT_LEAD_S, config.correction)
        return [approach, correct, settle, self._move([near, down], speed, insert_s)]

    def _carry(self, points: Array) -> list[Move]:
        """Moves through start, middle and end; one move passes the middle unless there is a reason to rest there."""
        speed = self._config.carry_speed
        begin, middle, _ = self._manner.pauses
        if not middle and self._manner.strategy != "low":
            return [self._move(points, speed, begin)]
        # The low way turns sharply beside the cup: a smooth curve through it would swing down towards the rim.
        first = self._move(points[:2], speed, begin)
        return [first, self._move(points[1:], speed, self._after(first, middle))]

    def _move(self, points: ArrayLike, speed: float, begin_s: float, haste: float = 1.0) -> Move:
        config = self._config
        peak = min(speed * self._manner.speed, config.max_speed)
        limits = MotionLimits(peak, haste * config.acceleration, haste * config.jerk)
        return Move(points, limits, begin_s, brisk=True)

    def _after(self, move: Move, pause_s: float) -> float:
        """Instant at which the next move begins: after a pause, else a little before this one has come to rest."""
        return move.end_s + pause_s if pause_s else max(move.begin_s, move.end_s - self._manner.blend)

"""The scripted picker: looks where cup and saucer are, plans once, and then drives like a person with a joystick."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.errors import BidError
from bid_ros.teleop.picking import STRAIGHT_ON, Offset, PickingConfig, PickingManner, draw_manner, way_points
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.trajectory import MotionLimits, Move, Trajectory

Array = NDArray[np.float64]
INSERT_LEAD_S: Final = 0.1  # by which the last part of a descent begins before the one before it has come to rest


class ScriptedPicker(PlannedTeleoperator):
    """Goes over the cup and down, closes, lifts, carries the cup over the saucer and down, opens, retreats and holds.

    ``clean`` demonstrations all do the same: straight ways, one speed, no pauses. ``diverse`` ones differ by seed in
    speed, in idle pauses, in how moves are joined, and in the ways to cup and saucer: straight, high, around the left
    or the right. Most of them first arrive beside the cup (or the saucer) and correct it, so that the data show how
    to get back from there. The phases are ``approach``, ``descend``, ``grasp``, ``lift``, ``carry``, ``lower``,
    ``release``, ``retreat`` and ``hold``.

    Args:
        style: ``clean`` or ``diverse``.
        seed: of the style's draws; ``clean`` has none.
        config: sizes, speeds and ranges.

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    def __init__(self, style: str, seed: int, config: PickingConfig | None = None) -> None:
        super().__init__()
        self._config = config or PickingConfig()
        self._manner = draw_manner(style, seed, self._config)

    @property
    def manner(self) -> PickingManner:
        """What this demonstration does."""
        return self._manner

    def plan(self, start_position: ArrayLike, cup_position: ArrayLike, saucer_position: ArrayLike, now_ns: int) -> None:
        """Plan a demonstration that begins at ``now_ns``; an earlier plan is forgotten.

        Args:
            start_position: (3,) of the tool in m, base frame, with the fingertips above the rim.
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
        if start[2] < self._config.geometry.rim_z:
            raise BidError(
                f"demonstration starts with the tool at {start[2]:.3f} m; "
                f"valid is at least {self._config.geometry.rim_z:.3f} m, where the fingers are over the rim"
            )
        trajectory, phases = self._build(start, cup, saucer)
        self._follow(trajectory, phases, now_ns, self._config.frame_id)

    def _build(self, start: Array, cup: Array, saucer: Array) -> tuple[Trajectory, list[tuple[float, str]]]:
        config = self._config
        ways, descend_s = self._arrive(start, cup)
        descent = self._descend_on_cup(cup, descend_s)
        grasped_s = descent[-1].end_s
        lift_s = grasped_s + config.grasp
        carries, lower_s = self._carry(cup, saucer, lift_s)
        lowering = self._descend_on_saucer(saucer, lower_s)
        released_s = lowering[-1].end_s
        retreat = self._retreat(saucer, released_s + config.release)
        close_s, open_s = grasped_s - config.close_lead, released_s - config.release_lead
        trajectory = Trajectory(
            position=start,
            rotation_6d=np.array(config.rotation_6d),
            moves=(*ways, *descent, *carries, *lowering, retreat),
            turns=(),
            widths=((0.0, config.open_width), (close_s, config.closed_width), (open_s, config.open_width)),
            duration_s=retreat.end_s + config.hold,
        )
        phases = [
            (0.0, "approach"),
            (descend_s, "descend"),
            (close_s, "grasp"),
            (lift_s, "lift"),
            (carries[1].begin_s, "carry"),
            (lower_s, "lower"),
            (open_s, "release"),
            (retreat.begin_s, "retreat"),
            (retreat.end_s, "hold"),
        ]
        return trajectory, phases

    def _arrive(self, start: Array, cup: Array) -> tuple[list[Move], float]:
        """Moves to the place where the descent begins, and when that is: approach, pause, and correct a miss."""
        config, manner, height = self._config, self._manner, self._config.geometry.above_z
        missed, left = (np.array(miss) for miss in manner.misses[:2])
        end = np.append(cup + (missed if missed.any() else left), height)
        points = way_points(start, end, manner.approach, manner.detours[0], config)
        before, middle, pause_s, _ = manner.pauses
        if middle:
            first = self._move(points[:2], config.approach_speed, before)
            ways = [first, self._move(points[1:], config.approach_speed, self._after(first, middle))]
        else:
            ways = [self._move(points, config.approach_speed, before)]
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

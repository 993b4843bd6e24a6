"""The scripted teleoperator: reads the pose of the cup, plans once, and moves like a person with a joystick."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.trajectory import Move, Trajectory
from bid_ros.tasks.placing.geometry import RIM_Z
from bid_ros.tasks.placing.styles import Manner, PlacingConfig, carry_points, draw_manner
from bid_ros.tasks.scripted import ScriptedMotion, check_start

Array = NDArray[np.float64]


class ScriptedTeleoperator(ScriptedMotion):
    """Carries the held object over the cup, lowers it straight in, opens, retreats upwards and holds.

    ``clean`` demonstrations are all alike: straight to the cup, one speed, no pauses. ``diverse`` ones differ by seed
    in speed, idle pauses, joins of moves, and path to the cup: straight, high over it, around the left or the right, or
    low beside it and then over (the paper's clean and diverse data). Most of them first arrive beside the cup and
    correct that. So the data show how to recover from there. The phases are ``carry``, ``lower``, ``release``,
    ``retreat`` and ``hold``.

    Args:
        style: ``clean`` or ``diverse``.
        seed: seed of the random draws. ``clean`` has none.
        config: sizes, speeds and ranges.

    Raises:
        BidError: the style is unknown, or the seed is negative.
    """

    def __init__(self, style: str, seed: int, config: PlacingConfig | None = None) -> None:
        self._config = config or PlacingConfig()
        self._manner = draw_manner(style, seed, self._config)
        super().__init__(self._config, self._manner.speed, self._manner.blend)

    @property
    def manner(self) -> Manner:
        """The random choices of this demonstration."""
        return self._manner

    def plan(self, start_position: ArrayLike, cup_position: ArrayLike, now_ns: int) -> None:
        """Plan a demonstration that begins at ``now_ns``. It replaces an earlier plan.

        Args:
            start_position: (3,) position of the tool in m, base frame. The object's end is above the rim.
            cup_position: (2,) or (3,) position of the cup's axis in m, base frame. The height is not used.
            now_ns: ROS time.

        Raises:
            BidError: a position is not finite, or the tool is too low to be carried over the rim.
        """
        start = np.asarray(start_position, dtype=np.float64)
        cup = np.asarray(cup_position, dtype=np.float64)[:2]
        check_start(start, cup[None], RIM_Z)
        trajectory, phases = self._build(start, cup)
        self._follow(trajectory, phases, now_ns, self._config.frame_id)

    def _build(self, start: Array, cup: Array) -> tuple[Trajectory, list[tuple[float, str]]]:
        config = self._config
        ways, begin_s = self._arrive(start, cup)
        # What is beside the axis is corrected over the rim, and its rest inside the cup.
        heights = (config.above_z, RIM_Z + self._manner.near, config.release_z)
        _, beside, inside = self._manner.misses
        descent = self._descend(cup, heights, config.lower_speed, beside, inside, self._manner.late, begin_s)
        down, end_s = np.append(cup, config.release_z), descent[-1].end_s
        open_s = end_s - config.release_lead
        up = down + np.array([0.0, 0.0, config.retreat])
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
        """Return the moves to the start of the descent, and its time: carry, pause, and correct a miss."""
        config, height = self._config, self._config.above_z
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

    def _carry(self, points: Array) -> list[Move]:
        """Return the moves through start, middle and end. One move passes the middle, unless the tool pauses there."""
        speed = self._config.carry_speed
        begin, middle, _ = self._manner.pauses
        if not middle and self._manner.strategy != "low":
            return [self._move(points, speed, begin)]
        # The low path turns sharply beside the cup: a smooth curve through it would dip towards the rim.
        first = self._move(points[:2], speed, begin)
        return [first, self._move(points[1:], speed, self._after(first, middle))]

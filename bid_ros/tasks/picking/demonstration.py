"""The scripted picker: reads the poses of cup and saucer, plans once, and moves like a person with a joystick."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.trajectory import Array, Move
from bid_ros.tasks.picking.geometry import GRASP_TOOL_HEIGHT, RIM_Z
from bid_ros.tasks.picking.recovery import Recovery, draw_recovery
from bid_ros.tasks.picking.styles import PickingConfig
from bid_ros.tasks.scripted import RECOVER, STRAIGHT_ON, DemonstrationPart, ScriptedMotion, check_start, way_points

RISE_SAMPLES: Final = 200


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

    Raises:
        BidError: the style is unknown or the seed negative.
    """

    config = PickingConfig()

    def recovery(self, cup: Array, saucer: Array) -> Recovery | None:
        """Return the start state with cup and saucer at ``(2,)`` m, base frame. None: the usual start."""
        if self._style != RECOVER:
            return None
        config = self.config
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
        recovery = self.recovery(cup, saucer)
        if recovery is not None and recovery.held:
            # It is put where the cup, not the tool, is over the saucer.
            saucer = saucer + start[:2] - cup
            cup, lift_s, picks = start[:2], 0.0, DemonstrationPart([], [(0.0, self.config.closed_width)], [])
        else:
            picks, lift_s = self._pick(start, cup, recovery is not None)
        *puts, end_s = self._put(cup, saucer, lift_s)
        self._perform(start, (picks, *puts), end_s, now_ns)

    def _pick(self, start: Array, cup: Array, missed: bool) -> tuple[DemonstrationPart, float]:
        """Return the moves until the fingers hold the cup, and that time."""
        config = self.config
        rises, open_s = self._rise(start) if missed else ([], 0.0)
        top, begin_s = (rises[-1].last, self._after(rises[-1], 0.0)) if rises else (start, 0.0)
        end, manner = np.append(self._arrival(cup), config.above_z), self.manner
        points = way_points(top, end, manner.strategies[0], manner.detours[0], config)
        ways = self._way(points, config.approach_speed, begin_s + manner.pauses[0], manner.pauses[1])
        descend_s = self._correct(ways, cup, config.above_z, config.descend_speed)
        # A miss is corrected over the rim, and its rest on either side of the cup.
        heights = (config.above_z, RIM_Z + manner.near[0], GRASP_TOOL_HEIGHT)
        descent = self._descend(cup, heights, config.descend_speed, manner.misses[1:3], manner.late[0], descend_s)
        close_s = descent[-1].end_s - config.close_lead
        widths = [(open_s, config.open_width), (close_s, config.closed_width)]
        phases = [(begin_s, "approach"), (descend_s, "descend"), (close_s, "grasp")]
        if missed:
            widths.insert(0, (0.0, config.closed_width))
            phases.insert(0, (0.0, "rise"))
        return DemonstrationPart([*rises, *ways, *descent], widths, phases), descent[-1].end_s + config.grasp

    def _put(self, cup: Array, saucer: Array, lift_s: float) -> tuple[DemonstrationPart, DemonstrationPart, float]:
        """Return the lift and the way to the saucer, what follows, and the time of the end."""
        config, manner, miss = self.config, self.manner, self.manner.misses[3]
        down, up = np.append(cup, GRASP_TOOL_HEIGHT), np.append(cup, config.carry_z)
        lift = self._move([down, up], config.carry_speed, lift_s)
        end = np.append(saucer + np.array(miss), config.carry_z)
        points = way_points(up, end, manner.strategies[1], manner.detours[1], config)
        carry = self._move(points, config.carry_speed, self._after(lift, 0.0))
        lower_s = self._after(carry, manner.pauses[3])
        # A miss is corrected before the cup is down.
        heights = (config.carry_z, config.release_z + manner.near[1], config.release_z)
        descent = self._descend(saucer, heights, config.lower_speed, (miss, STRAIGHT_ON), manner.late[1], lower_s)
        return DemonstrationPart([lift, carry], [], [(lift_s, "lift"), (carry.begin_s, "carry")]), *self._let_go(
            descent, lower_s
        )

    def _rise(self, start: Array) -> tuple[list[Move], float]:
        """The move straight up from where a grasp missed, and when the fingers open: well over the rim."""
        config = self.config
        top = np.array([start[0], start[1], max(start[2], config.above_z)])
        rise = self._move([start, top], config.carry_speed, 0.0)
        times = np.linspace(rise.begin_s, rise.end_s, RISE_SAMPLES)
        over = start[2] + rise.displacement(times)[:, 2] >= config.clear_z
        return [rise], float(times[int(np.argmax(over))])

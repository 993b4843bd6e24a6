"""The scripted teleoperator: reads the pose of the cup, plans once, and moves like a person with a joystick."""

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.tasks.placing.geometry import RIM_Z
from bid_ros.tasks.placing.styles import PlacingConfig, carry_points
from bid_ros.tasks.scripted import DemonstrationPart, ScriptedMotion, check_start


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

    Raises:
        BidError: the style is unknown, or the seed is negative.
    """

    config = PlacingConfig()

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
        config, manner = self.config, self.manner
        # The low path turns sharply beside the cup: a smooth curve through it would dip towards the rim.
        points, sharp = carry_points(start, self._arrival(cup), manner, config), manner.strategies[0] == "low"
        ways = self._way(points, config.carry_speed, manner.pauses[0], manner.pauses[1], sharp)
        if manner.strategies[0] == "high":
            sink = [ways[-1].last, np.append(self._arrival(cup), config.above_z)]
            ways.append(self._move(sink, config.carry_speed, self._after(ways[-1], 0.0)))
        lower_s = self._correct(ways, cup, config.above_z, config.lower_speed)
        # What is beside the axis is corrected over the rim, and its rest inside the cup.
        heights = (config.above_z, RIM_Z + manner.near[0], config.release_z)
        descent = self._descend(cup, heights, config.lower_speed, manner.misses[1:], manner.late[0], lower_s)
        puts, end_s = self._let_go(descent, lower_s)
        carries = DemonstrationPart(ways, [(0.0, config.closed_width)], [(0.0, "carry")])
        self._perform(start, (carries, puts), end_s, now_ns)

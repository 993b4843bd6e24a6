"""Whether the joint speeds that a Franka reports are those at which its joints turn."""

import math
from collections import deque
from typing import Final

from bid_ros.core.margins import Margins

# The comparison is over the last moments, s. Over less, slow joints tell nothing. Over more, honest speeds err more.
WINDOW_S: Final = 0.05
# How far a joint may be from where its speed leads in that time, rad, and s, times the change of its speed. An FR3 says
# speeds that are 2.9 ms late: that much times their change is missing. Six allow for twice that.
OFF: Final = (0.0008, 0.006)
# Longest time between two states that tells how the speed went between them, s: a busy computer loses states, and a
# wrist joint of a twin that is held up swings several times in 20 ms. Speeds are read every 2 or 4 ms.
REGULAR_S: Final = 0.0065

# A state: time by the robot's clock, s; joints, rad; their speeds added up so far, rad; speeds, rad/s.
_State = tuple[float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]


class SaidSpeeds:
    """Compares how far the joints went in the last moments with the speeds reported meanwhile.

    A control law takes its damping from these speeds. Where they are too small by a third, the arm is a third faster
    within 50 ms, so a comparison over longer times finds it too late.

    Args:
        time_s, joints, speeds: of the first state: s by the robot's clock, ``(n,)`` rad and rad/s.
        room: factor of the limits.
        margins: where to note how near to the limits it comes.
    """

    def __init__(
        self, time_s: float, joints: tuple[float, ...], speeds: tuple[float, ...], room: float, margins: Margins
    ) -> None:
        self._room, self._margins = room, margins
        self._states: deque[_State] = deque([(time_s, joints, (0.0,) * len(joints), speeds)])

    def doubt(self, time_s: float, joints: tuple[float, ...], speeds: tuple[float, ...]) -> str:
        """Return which joint of the newest state does not agree, with the limit; empty if all do. As ``__init__``."""
        states = self._states
        before_s, _, led, speeds_then = states[-1]
        step_s = time_s - before_s
        if step_s > REGULAR_S:
            states.clear()  # nobody knows the speed between
        pairs = zip(led, speeds_then, speeds, strict=True)
        states.append((time_s, joints, tuple(way + 0.5 * step_s * (then + now) for way, then, now in pairs), speeds))
        while time_s - states[0][0] > WINDOW_S:
            states.popleft()
        return self._compared()

    def _compared(self) -> str:
        (since_s, *first), (time_s, *last) = self._states[0], self._states[-1]
        most_rad, most_s = (self._room * most for most in OFF)
        worst = (0.0, 1, 0.0, most_rad)
        for joint, (begin, led_then, speed_then, end, led, speed) in enumerate(zip(*first, *last, strict=True), 1):
            off, limit = abs((end - begin) - (led - led_then)), most_rad + most_s * abs(speed - speed_then)
            if not off / limit <= worst[0]:  # not `>`, which NaN would pass
                worst = (off / limit, joint, off, limit)
            if math.isnan(off):
                break
        _, joint, off, limit = worst
        if self._margins.over("speeds", off, limit):
            passed = f"over {time_s - since_s:.3f} s"
            return f"joint {joint} is {off:.4f} rad from where its speed leads {passed}; valid is up to {limit:.4f}"
        return ""

"""Whether the states of a robot agree with each other: what is alike for all robots.

A wrong state may lie within every valid range. It shows when two values that depend on each other disagree.
"""

from typing import Final

from bid_ros.core.margins import Margins

# Errors add up over about this long, s; older ones are forgotten.
MEMORY_S: Final = 0.5
# Where states are further apart than this, s, nobody knows the speed between.
GAP_S: Final = 0.0205


class JointTravel:
    """Compares how far the joints have moved from state to state with their speeds.

    Args:
        joints, speeds: of the first state, rad and rad/s.
        fastest: rad/s that no joint exceeds.
        most: how far a joint may be from where its speed leads: rad, and s, times its speed.
        margins: where to note how near to the limits it comes.
        most_speed: largest speed that a state may say, rad/s; None: ``fastest``.
    """

    def __init__(
        self,
        joints: tuple[float, ...],
        speeds: tuple[float, ...],
        fastest: float,
        most: tuple[float, float],
        margins: Margins,
        most_speed: float | None = None,
    ) -> None:
        self._most_speed = most_speed or fastest
        self._joints, self._speeds = joints, speeds
        self._fastest, self._most, self._margins = fastest, most, margins
        self._off = [0.0] * len(joints)

    def doubt(
        self, joints: tuple[float, ...], speeds: tuple[float, ...], step_s: float, moving_s: tuple[float, float]
    ) -> str:
        """Return which joint of the newest state does not agree, with the limit; empty if all do.

        Args:
            joints: rad.
            speeds: rad/s.
            step_s: s since the state before, by the robot's clock.
            moving_s: shortest and longest time in s for which the joints may have moved since then.
        """
        states = zip(self._joints, joints, self._speeds, speeds, strict=True)
        self._joints, self._speeds = joints, speeds
        fastest = max(map(abs, speeds))
        if self._margins.over("speed", fastest, self._most_speed):
            return f"a joint turns at {fastest:.2f} rad/s; valid is up to {self._most_speed:.2f}"
        (low_s, high_s), (most_rad, most_s) = moving_s, self._most
        kept = max(0.0, 1.0 - step_s / MEMORY_S)
        worst = (0.0, 1, 0.0, 1.0)
        for joint, (start, end, speed_then, speed_now) in enumerate(states):
            speed, moved = 0.5 * (speed_then + speed_now), end - start
            low, high = (speed * low_s, speed * high_s) if speed > 0.0 else (speed * high_s, speed * low_s)
            if step_s > GAP_S:
                low, high = -self._fastest * step_s, self._fastest * step_s
            self._off[joint] = off = kept * self._off[joint] + max(moved - high, 0.0) + min(moved - low, 0.0)
            limit = most_rad + most_s * abs(speed)
            worst = max(worst, (abs(off) / limit, joint + 1, abs(off), limit))
        _, number, off, limit = worst
        if self._margins.over("joint", off, limit):
            return f"joint {number} is {off:.3f} rad from where its speed leads; valid is up to {limit:.3f}"
        return ""

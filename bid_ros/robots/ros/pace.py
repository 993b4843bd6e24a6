"""How far joints may go in a while: the sum of their steps, held against their speed limits."""

from typing import Final

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.robots.ros.limits import DriverLimits

BURST_S: Final = 0.05  # two set-points may come together on a busy computer
NEAR_RAD: Final = 0.02  # what a set-point at rest may ask of a joint beyond that


class JointPace:
    """Bounds what the steps of the joints add up to. In any T s a joint goes ``NEAR_RAD + (T + BURST_S) * speed``.

    So a single step may be early, but many of them may not.

    Args:
        limits: of the joints.
    """

    def __init__(self, limits: DriverLimits) -> None:
        self._limits = limits
        self._most = NEAR_RAD + BURST_S * limits.speed
        self._left, self._taken_s = self._most, 0.0

    def begin(self, now_s: float) -> None:
        """Begin at rest, at a steady time in s."""
        self._left, self._taken_s = self._most, now_s

    def since_s(self, now_s: float) -> float:
        """Return the s since the newest step, ``BURST_S`` at most."""
        return min(max(now_s - self._taken_s, 0.0), BURST_S)

    def take(self, step: Array, now_s: float) -> str:
        """Count a step of the joints.

        Args:
            step: ``(n,)`` rad.
            now_s: steady time in s.

        Returns:
            One sentence if the joints cannot go that fast, and the step is not counted; otherwise an empty text.
        """
        room = self._left + self._limits.speed * max(now_s - self._taken_s, 0.0)
        refusal = self._limits.too_fast(self._limits.speed * np.abs(step) / np.maximum(room, 1e-9))
        if not refusal:
            self._left, self._taken_s = np.clip(room - np.abs(step), 0.0, self._most), now_s
        return refusal

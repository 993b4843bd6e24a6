"""How the robot brakes by itself: every joint slows down along its own path, all of them come to rest together."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.reflexes import CYCLE_S, JOINT_ACCELERATION

Array: TypeAlias = NDArray[np.float64]
DECELERATION: Final = JOINT_ACCELERATION  # rad/s^2, of the fastest joint


class Braking:
    """Brings the arm to rest, and holds it there.

    Args:
        q: joints where it begins, rad; dq: their speeds, rad/s.
    """

    def __init__(self, q: Array, dq: Array) -> None:
        self._q, self._dq = q.copy(), dq.copy()
        self._left = max(1, int(np.ceil(np.abs(dq).max() / (DECELERATION * CYCLE_S))))
        self._slowing = dq / self._left

    @property
    def rests(self) -> bool:
        """Whether the commanded path has come to its end."""
        return self._left == 0

    def drive(self, robot: FastFrankaRobot) -> None:
        """Drive the joints for one cycle."""
        if self._left:
            self._left -= 1
            self._dq = self._slowing * self._left
            self._q += self._dq * CYCLE_S
        robot.follow(self._q, self._dq)

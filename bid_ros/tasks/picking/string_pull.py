"""The string: a light spring that only pulls, wound up by a hand that moves ahead of the cup along its path."""

from typing import Final

import numpy as np

from bid_ros.sim.soft_start import travelled
from bid_ros.sim.twin import Array
from bid_ros.tasks.picking.geometry import CUP_STRING_HEIGHT
from bid_ros.tasks.picking.string_path import StringPath

LENGTH: Final = 0.10  # m from the cup's axis to the hand
STIFFNESS: Final = 250.0  # N/m; friction of 0.4 N stretches it by less than 2 mm
DAMPING: Final = 6.0  # N s/m
MAX_TENSION: Final = 2.0  # N; a cup that is held up takes the string out of the hand, which waits


class StringPull:
    """Pulls the cup at the speed of its path.

    The hand goes a string's length ahead of where the cup should be, in the direction in which it should go there. A
    cup that slides goes where the string points, so it follows the path. The speed is the hand's; the tension is
    what that takes, between 0 and ``MAX_TENSION``.

    Args:
        path: where the cup is pulled.
    """

    def __init__(self, path: StringPath) -> None:
        self._path = path
        self._time_s = 0.0
        self._held = True
        self._hand = self._hand_at(0.0)
        self.tension = 0.0

    def let_go(self) -> None:
        """Let the string hang for good."""
        self._held = False
        self.tension = 0.0

    def step(self, cup_position: Array, cup_velocity: Array, dt: float) -> tuple[Array, Array]:
        """Go on by ``dt`` s.

        Args:
            cup_position: ``(3,)`` middle of the foot, m, base frame.
            cup_velocity: ``(3,)`` m/s.

        Returns:
            the knot, the point ``(3,)`` in m at which the string holds the cup, and the force ``(3,)`` in N there.
        """
        knot = cup_position + np.array([0.0, 0.0, CUP_STRING_HEIGHT])
        if not self._held:
            return knot, np.zeros(3)
        if self.tension < MAX_TENSION:
            self._time_s += dt
        before, self._hand = self._hand, self._hand_at(self._time_s)
        way = self._hand - knot
        length = float(np.linalg.norm(way))
        along = way / max(length, 1e-9)
        stretch = length - LENGTH
        rate = float(along @ ((self._hand - before) / dt - cup_velocity))
        pull = STIFFNESS * stretch + DAMPING * rate if stretch > 0 else 0.0
        self.tension = min(max(pull, 0.0), MAX_TENSION)
        return knot, self.tension * along

    def _hand_at(self, time_s: float) -> Array:
        distance = travelled(self._path.speed, time_s)
        x, y = self._path.position(distance) + LENGTH * self._path.direction(distance)
        return np.array([x, y, CUP_STRING_HEIGHT])

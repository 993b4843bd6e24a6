"""The pose of a phone or a touched pad, as a page tells it, and how far it has come since it was held."""

import numpy as np

from bid_ros.core.rotation import Array, matrix_from_vector
from bid_ros.teleop.base import Offset

UP = np.array([0.0, 0.0, 1.0])


def rotation_of(alpha: float, beta: float, gamma: float) -> Array:
    """Return the rotation ``(3, 3)``, phone to earth, of the angles that a browser tells, degrees.

    The phone's axes: x to the right of its screen, y to its top, z out of it. Earth's z is up. Source: W3C, "Device
    Orientation and Motion": turns about z, then the new x, then the new y.
    """
    about_z, about_x, about_y = (
        matrix_from_vector(np.radians(angle) * np.eye(3)[axis]) for angle, axis in ((alpha, 2), (beta, 0), (gamma, 1))
    )
    turned: Array = about_z @ about_x @ about_y
    return turned


def facing(rotation: Array) -> Array:
    """Return the axes ``(3, 3)`` of the person who holds a phone, as columns in earth's axes: ahead, left, up.

    Ahead is where the top of a lying phone points, and the back of an upright one.
    """
    ahead = (rotation[:, 1] - rotation[:, 2]) * [1.0, 1.0, 0.0]
    length = float(np.linalg.norm(ahead))
    ahead = ahead / length if length > 1e-3 else np.array([1.0, 0.0, 0.0])
    return np.stack([ahead, np.cross(UP, ahead), UP], axis=1)


class Grip:
    """Follows what is held. Whatever interrupts it, a new hold counts from zero: so nothing jumps."""

    def __init__(self) -> None:
        self._closing = 0
        self._hold: tuple[int, bool] | None = None
        self._place, self._first, self._seen = np.zeros(4), np.eye(3), np.eye(3)

    def release(self) -> None:
        """Let go: the next pose is the begin of a new hold."""
        self._hold = None

    def offset(self, hold: int, place: Array, lean: Array | None, seen: Array | None = None) -> Offset:
        """Return how far the device has come since it was held.

        Args:
            hold: number of the hold, as the device counts it.
            place: ``(4,)``: x, y, z in m and a turn about z in rad, as the person sees them: ahead, left, up.
            lean: ``(3,)``: alpha, beta and gamma of the phone in degrees; None: no sensor tells.
            seen: ``(3, 3)``: ahead, left and up of the person, columns in base axes, as they are at the begin of a
                hold; None: those of the base.
        """
        now = np.eye(3) if lean is None else rotation_of(*(float(angle) for angle in lean))
        held = (hold, lean is not None)  # a sensor may wake up, or fall asleep, during a hold
        if held != self._hold:
            self._hold, self._closing = held, self._closing + 1
            self._place, self._first, self._seen = place, now, np.eye(3) if seen is None else seen
        moved, axes = place - self._place, facing(self._first)
        turn = axes.T @ now @ self._first.T @ axes @ matrix_from_vector(moved[3] * UP)
        return Offset(self._seen @ moved[:3], self._seen @ turn @ self._seen.T, self._closing)

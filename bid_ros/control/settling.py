"""Where a compliant arm holds after a stop: where it is, not at the set-point that it has overshot."""

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from bid_ros.control.servo_base import ServoMode, ServoOutput
from bid_ros.control.spatial import Vector
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array

SLOW: Final = 0.05  # m/s of the tool, below which it is about to turn back
TURNED: Final = 0.15  # m/s, below which it holds if it has turned back already: its axes do not turn at one instant
OFF_M: Final = 0.001  # m from the set-point; nearer, nothing is gained
SPANS_NS: Final = (10_000_000, 60_000_000)  # over which the speed is measured, at least, before each hold
WITHIN_NS: Final = 500_000_000  # after the set-point stands; a stopped arm that somebody pushes later comes back


class ToolReading(Protocol):
    """What an arm measures: a time in ns, and the tool ``(3,)`` m, base frame."""

    @property
    def stamp_ns(self) -> int:
        """When it was measured."""

    @property
    def tool_position(self) -> Array:
        """Where the tool is."""


class Settling:
    """Finds the instant at which a stopped, compliant arm should hold where it is.

    Braked at 5 m/s^2, a Franka overshoots its set-point by 5 to 10 mm. The spring of its controller would then pull it
    back for 0.3 s. It would also go on pressing on whatever it was pressed against.

    An arm that did not move is left alone: a load that the controller does not know pulls it down as far again at each
    hold. After a motion it holds once, and a second time only where it is not below its set-point.

    Args:
        low, high: corners ``(3,)`` of the workspace, m. Outside it the spring may pull the arm back.
    """

    def __init__(self, low: Vector, high: Vector) -> None:
        self._low, self._high = np.array(low), np.array(high)
        self._first_ns: int | None = None
        self._last: ToolReading | None = None
        self._holds, self._moved = 0, False

    def due(self, output: ServoOutput, state: Callable[[], ToolReading]) -> bool:
        """Pass a step of the servo; return whether to hold where the arm is. True at most twice for each stop.

        Args:
            output: of the servo.
            state: returns the newest state.
        """
        if output.mode is not ServoMode.STOPPED:
            self._first_ns, self._last, self._holds, self._moved = None, None, 0, False
            return False
        found = self._holds < len(SPANS_NS) and self._slow(output, state())
        self._holds += found
        return found

    def _slow(self, output: ServoOutput, newest: ToolReading) -> bool:
        """Return whether the arm is off its set-point and hardly moves any more."""
        if self._last is None or self._first_ns is None:
            self._first_ns, self._last = newest.stamp_ns, newest
        passed_ns = newest.stamp_ns - self._last.stamp_ns
        if passed_ns < SPANS_NS[self._holds] or newest.stamp_ns - self._first_ns > WITHIN_NS:
            return False
        place = newest.tool_position
        speed = float(np.linalg.norm(place - self._last.tool_position)) * NANOSECONDS / passed_ns
        off_m = float(np.linalg.norm(place - output.setpoint.position))
        inside = bool(((place >= self._low) & (place <= self._high)).all())
        nearer = off_m < float(np.linalg.norm(self._last.tool_position - output.setpoint.position))
        self._last, self._moved = newest, self._moved or speed >= SLOW
        sunk = self._holds > 0 and place[2] < output.setpoint.position[2]
        return inside and self._moved and not sunk and off_m > OFF_M and speed < (TURNED if nearer else SLOW)

"""The progress of a joint motion of a UR, judged by the joints."""

from __future__ import annotations

from typing import Final

from bid_ros.robots.ur.protocol import Outcome
from bid_ros.robots.ur.status import UrReading

ARRIVED_RAD: Final = 0.005
STILL: Final = 0.01  # rad/s
# s without motion that count as rest. Before that the motion may not have begun.
REST_S: Final = 0.1
BEGIN_S: Final = 0.25


class JointMotion:
    """A joint motion under way.

    Args:
        goal: ``(6,)`` rad.
        now_ns: time of the robot's answer that it begins, steady nanoseconds.
    """

    def __init__(self, goal: tuple[float, ...], now_ns: int) -> None:
        self._goal = goal
        self._begun_ns = self._moving_ns = now_ns
        self.stopped = False

    def outcome(self, reading: UrReading, now_ns: int) -> Outcome:
        """Return the result; ``NONE`` while it goes on."""
        if max(map(abs, reading.joint_speeds)) > STILL:
            self._moving_ns = now_ns
        if now_ns - self._moving_ns < REST_S * 1e9:
            return Outcome.NONE
        if self.stopped:
            return Outcome.STOPPED
        if max(abs(a - b) for a, b in zip(reading.joints, self._goal, strict=True)) < ARRIVED_RAD:
            return Outcome.ARRIVED
        return Outcome.MISSED if now_ns - self._begun_ns > BEGIN_S * 1e9 else Outcome.NONE

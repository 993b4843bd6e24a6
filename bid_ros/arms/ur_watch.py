"""Watches an open UR: keeps its newest state, and finds out that it cannot go on or is lost, and why."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bid_ros.arms.ur_config import UrConfig
from bid_ros.arms.ur_robot import UrRobot
from bid_ros.arms.ur_status import PLAYING, possible, trouble
from bid_ros.chunk import NANOSECONDS

# By how much the clocks of robot and computer may differ in their pace. States that come later and later, faster than
# that, are delayed on their way.
DRIFT: Final = 5e-4


def even_ns() -> int:
    """Return a steady time in ns that no time service speeds up or slows down."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@dataclass(frozen=True)
class Finding:
    """Why a robot cannot go on.

    Attributes:
        reason: one sentence.
        lost: nothing more can be heard or said, so that the connection must be given up.
        silent: it is lost because it said nothing, and may still hear us.
    """

    reason: str
    lost: bool = False
    silent: bool = False


class UrWatch:
    """Reads the robot once a period, and says how old what it read is.

    A state is as old as it came later than the quickest ones did, by the robot's clock and this computer's. So a delay
    that grows is noticed, if it grows faster than clocks may differ; one that is the same from the start is not.

    Args:
        config: of the arm.
        robot: open.
        clock: steady time in ns at an even pace: not one that is steered towards another, which may be by more than
            DRIFT.

    Attributes:
        reading: the newest state; stamp_ns: when it was true, nanoseconds since 1970; steady_ns: the same instant on
            the steady clock that other processes read; state_ns: on ``clock``.
    """

    def __init__(self, config: UrConfig, robot: UrRobot, clock: Callable[[], int] = even_ns) -> None:
        self._config = config
        self._robot = robot
        self._clock = clock
        self.reading = robot.read()
        self.stamp_ns, self.steady_ns = time.time_ns(), time.monotonic_ns()
        self.state_ns = self._read_ns = clock()
        self._shortest_ns = self.state_ns - self._robot_ns

    def look(self) -> Finding | None:
        """Read the robot; return why it cannot go on, None if it can."""
        address, reading = self._config.address, self._robot.read()
        # Not what the loop's period began with: it may have waited for the robot since.
        now_ns = self._clock()
        if reading.robot_s != self.reading.robot_s:
            if not possible(reading, self.reading):
                return Finding(
                    f"robot at {address} sent a state that cannot be: check what damages its data on the network, then "
                    "reset"
                )
            self.reading = reading
            # A state is never older than the one before it, though the quickest of all may come at any time.
            self.state_ns = max(self.state_ns, now_ns - self._late_ns(now_ns))
            age_ns = now_ns - self.state_ns
            self.stamp_ns, self.steady_ns = time.time_ns() - age_ns, time.monotonic_ns() - age_ns
        if not self._robot.connected():
            return Finding(
                f"robot at {address} closed the connection: check its network and that it is on, then reset", lost=True
            )
        age_s, silence_s = (now_ns - self.state_ns) / 1e9, (now_ns - self._read_ns) / 1e9
        if age_s > self._config.state_timeout_s:
            # Of both, whichever made most of it.
            reason = (
                f"robot at {address} has been silent for {age_s:.2f} s: check cable and power, then reset"
                if silence_s > age_s / 2
                else f"robot at {address} is heard {age_s:.2f} s late: check what delays its network, then reset"
            )
            return Finding(reason, lost=True, silent=True)
        reason = trouble(address, self.reading)
        return Finding(reason) if reason else None

    def why_stopped(self) -> str:
        """Return one sentence on our program not running, empty if it does.

        Which of its reasons it was, local mode for example, is found out by the recovery: in this process nothing may
        connect to the robot any more.
        """
        if self.reading.runtime == PLAYING:
            return ""
        return (
            f"robot at {self._config.address} stopped our program: look at the pendant, whether it is in local mode, "
            "and check that nothing delays the network or this computer, then reset"
        )

    @property
    def _robot_ns(self) -> int:
        return round(self.reading.robot_s * NANOSECONDS)

    def _late_ns(self, now_ns: int) -> int:
        """Return by how much the newest state came later than the quickest ones do, and note that it was read."""
        took_ns = now_ns - self._robot_ns
        drifted_ns = round(DRIFT * (now_ns - self._read_ns))
        self._read_ns = now_ns
        self._shortest_ns = min(took_ns, self._shortest_ns + drifted_ns)
        return took_ns - self._shortest_ns

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
from bid_ros.rtde import PackageError

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
    that grows is noticed, if it grows faster than clocks may differ. While set-points are sent, the time until the
    robot reports them back tells of any delay, on the way there or back, also of one that is the same from the start.

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
                return self._damaged()
            self.reading = reading
            # A state is never older than the one before it, though the quickest of all may come at any time.
            self.state_ns = max(self.state_ns, now_ns - self._late_ns(now_ns))
            age_ns = now_ns - self.state_ns
            self.stamp_ns, self.steady_ns = time.time_ns() - age_ns, time.monotonic_ns() - age_ns
        if not self._robot.connected():
            return self._closed()
        late = self._too_late(now_ns)
        if late is not None:
            return late
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

    def _damaged(self) -> Finding:
        return Finding(
            f"robot at {self._config.address} sent a state that cannot be: check what damages its data on the network, "
            "then reset"
        )

    def _closed(self) -> Finding:
        return Finding(
            f"robot at {self._config.address} closed the connection: check its network and that it is on, then reset",
            lost=True,
        )

    def _too_late(self, now_ns: int) -> Finding | None:
        """Return that the robot is silent, or is heard or hears us too late; None if it is neither."""
        try:
            unheard_s = self._robot.unheard_s()
        except OSError:
            return self._closed()
        except PackageError:
            return self._damaged()
        age_s, silence_s = (now_ns - self.state_ns) / 1e9, (now_ns - self._read_ns) / 1e9
        late_s = max(age_s, unheard_s)
        if late_s <= self._config.state_timeout_s:
            return None
        # Of these, whichever made most of it.
        if silence_s > late_s / 2:
            what = f"has been silent for {late_s:.2f} s: check cable and power"
        elif age_s > late_s / 2:
            what = f"is heard {late_s:.2f} s late: check what delays its network"
        else:
            what = f"hears us {late_s:.2f} s late: check what delays its network"
        return Finding(f"robot at {self._config.address} {what}, then reset", lost=True, silent=True)

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

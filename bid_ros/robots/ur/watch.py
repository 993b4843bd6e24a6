"""Watches an open UR: keeps its newest state, and detects that it cannot go on or is lost, and why."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bid_ros.control.spatial import Pose
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.fault_words import CLOCK_GAINED
from bid_ros.core.margins import Margins
from bid_ros.robots.age import StateAge
from bid_ros.robots.consistency import MEMORY_S
from bid_ros.robots.unheard import MOST_NS, RESTING_TWIN_S, Unheard, late_text
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.consistency import Consistency, joint_course, tool_course
from bid_ros.robots.ur.robot import UrRobot
from bid_ros.robots.ur.rtde import PackageError
from bid_ros.robots.ur.status import PLAYING, UrReading, possible, trouble

# A robot whose states were missing for this long within MEMORY_S, s, may follow so late that nothing can be said of it.
STALLED_S: Final = 0.15


def even_ns() -> int:
    """Return a steady time in ns whose pace no time service changes."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@dataclass(frozen=True)
class Trouble:
    """Why a robot cannot go on.

    Attributes:
        reason: one sentence.
        lost: the connection does not work any more and must be given up.
        silent: it is lost because it sent nothing. It may still hear us.
        doubtful: its states contradict themselves, so it must be stopped without using them.
    """

    reason: str
    lost: bool = False
    silent: bool = False
    doubtful: bool = False


class UrWatch:
    """Reads the robot once a period, and measures the age of its states.

    Age: this state's delay minus the smallest delay seen so far. The delay is the robot's time stamp against this
    computer's clock. So a delay that grows faster than the clocks may differ is noticed. While set-points are sent, the
    time until the robot reports them back shows any delay, either way, also a constant one.

    A process that was held up itself does not take that for a silence or a delay of the robot: what came meanwhile may
    still wait for ur_rtde's thread.

    A twin that is at rest may be silent or late for longer: its computer may hold it up, and it cannot move meanwhile.
    That time does not count once it moves.

    A state that contradicts itself, the state before it, or the sent set-points is not passed on. Neither is any later
    state.

    Args:
        config: of the arm.
        robot: open.
        clock: steady time in ns at an even pace. A clock that follows another one may deviate by more than DRIFT.

    Attributes:
        reading: newest state that can be believed; stamp_ns: its time, nanoseconds since 1970; steady_ns: the same on
            the steady clock that other processes read.
        state_ns: time of the newest state on ``clock``.
        margins: largest share of each limit in the comparisons of states.
    """

    def __init__(self, config: UrConfig, robot: UrRobot, clock: Callable[[], int] = even_ns) -> None:
        self._config = config
        self._robot = robot
        self._clock = clock
        self.reading = self._heard = robot.read()
        self.stamp_ns, self.steady_ns = time.time_ns(), time.monotonic_ns()
        self.state_ns = clock()
        self._rested_ns = 0  # newest time at which a twin was at rest
        self._age = StateAge(_robot_ns(self._heard), self.state_ns)
        self._period_s = 1.0 / robot.rate_hz
        self._silence = Unheard(config.state_timeout_s)
        self._looked_ns, self._held_ns, self._late_ns = self.state_ns, 0, 0
        self._unheard_s = self._stalled_s = 0.0
        self._doubt = ""
        self.margins = Margins()
        self._consistency = Consistency(config, self._heard, self._age.read_ns, self._period_s, self.margins)
        self._course, self._joint_course = tool_course(config, self.margins), joint_course(config, self.margins)

    def begin(self, pose: Pose) -> None:
        """A stream of set-points begins at a pose."""
        self._course.begin(pose, self.reading.pose, self._clock())

    def sent(self, pose: Pose) -> None:
        """Note a set-point that was sent."""
        self._course.sent(pose, self._clock())

    def begin_joints(self, joints: tuple[float, ...]) -> None:
        """A stream of set-points of the joints begins at ``(6,)`` rad."""
        self._joint_course.begin(joints, self.reading.joints, self._clock())

    def sent_joints(self, joints: tuple[float, ...]) -> None:
        """Note a set-point of the joints that was sent."""
        self._joint_course.sent(joints, self._clock())

    def end(self) -> None:
        """The stream of set-points has ended."""
        self._course.end()
        self._joint_course.end()

    def look(self, at_rest: bool = False) -> Trouble | None:
        """Read the robot. Return why it cannot go on. None: it can.

        Args:
            at_rest: nothing moves the arm: no set-point, and no joint motion.
        """
        reading = self._robot.read()
        # Not the begin of the loop's period: the loop may have waited for the robot since.
        now_ns = self._clock()
        self._note_hold_up(now_ns)
        if reading.robot_s != self._heard.robot_s:
            if not possible(reading, self._heard):
                return self._damaged()
            self._take(reading, now_ns)
        if not self._robot.connected():
            return self._closed()
        late = self._too_late(now_ns, at_rest and self._config.twin)
        if late is not None:
            return late
        reason = trouble(self._config.address, self._heard)
        if reason:
            return Trouble(reason)
        return Trouble(self._doubt, doubtful=True) if self._doubt else None

    def why_stopped(self) -> str:
        """Return one sentence if our program does not run; empty if it does.

        The recovery finds the reason, for example local mode. This process may not connect to the robot any more.
        """
        if self.reading.runtime == PLAYING:
            return ""
        return (
            f"robot at {self._config.address} stopped our program: look at the pendant, whether it is in local mode, "
            "and check that nothing delays the network or this computer, then reset"
        )

    def _note_hold_up(self, now_ns: int) -> None:
        """Note for how long this process was held up. It has caught up after as long again at the latest."""
        passed_ns, self._looked_ns = now_ns - self._looked_ns, now_ns
        ran_ns = min(passed_ns, MOST_NS)
        self._held_ns = max(0, self._held_ns - ran_ns) + passed_ns - ran_ns

    def _take(self, reading: UrReading, now_ns: int) -> None:
        """Take the newest state, and keep it if it can be believed."""
        # A state is never older than the one before it, though the quickest of all may come at any time.
        self.state_ns = max(self.state_ns, now_ns - self._age.late_ns(_robot_ns(reading), now_ns))
        self._late_ns = max(0, now_ns - self.state_ns - self._held_ns)
        step_s = reading.robot_s - self._heard.robot_s
        self._stalled_s = max(0.0, (1.0 - step_s / MEMORY_S) * self._stalled_s + step_s - self._period_s)
        self._heard = reading
        # For a robot that is switched off or stopped, nothing else matters.
        if not self._doubt and not trouble(self._config.address, reading):
            self._doubt = self._doubt_of(reading, now_ns)
        if not self._doubt:
            self.reading = reading
            age_ns = now_ns - self.state_ns
            self.stamp_ns, self.steady_ns = time.time_ns() - age_ns, time.monotonic_ns() - age_ns

    def _doubt_of(self, reading: UrReading, now_ns: int) -> str:
        """Return one sentence on the contradiction in a state; empty without one."""
        gained_s, most_s = self._age.gained_ns / NANOSECONDS, self._config.state_timeout_s
        if self.margins.over("clock", gained_s, most_s):
            what = f"{CLOCK_GAINED} {gained_s:.2f} s on this computer's; valid is up to {most_s:.2f} s"
        else:
            what = self._consistency.doubt(reading, now_ns)
            if not what and self._stalled_s < STALLED_S:
                given = reading, self.state_ns, self._unheard_s + self._stalled_s
                what = self._course.doubt(*given) or self._joint_course.doubt(*given)
        where = f"robot at {self._config.address}"
        return what and f"{where} contradicts itself, {what}: compare it with what the pendant shows, then reset"

    def _damaged(self, what: str = "") -> Trouble:
        return Trouble(
            f"robot at {self._config.address} sent a state that cannot be{what}: check what damages its data on the "
            "network, then reset"
        )

    def _closed(self) -> Trouble:
        return Trouble(
            f"robot at {self._config.address} closed the connection: check its network and that it is on, then reset",
            lost=True,
        )

    def _too_late(self, now_ns: int, resting: bool) -> Trouble | None:
        """Return a finding if the robot is silent or late, either way. None: it is not. ``resting``: a twin is."""
        try:
            self._unheard_s = unheard_s = self._robot.unheard_s()
        except OSError:
            return self._closed()
        except PackageError as error:
            return self._damaged(f", {error}")
        rested_ns, most_s = (0, RESTING_TWIN_S) if resting else (self._rested_ns, self._silence.limit_s)
        heard_s = self._silence.look(self._heard.robot_s, now_ns)
        silence_s, age_s = (
            min(passed_s, (now_ns - rested_ns) / NANOSECONDS)
            for passed_s in (heard_s, heard_s + self._late_ns / NANOSECONDS)
        )
        # A twin that was held up, maybe with this process, did not hear what was sent meanwhile.
        stood_s = (now_ns - max(self._age.read_ns, rested_ns)) / NANOSECONDS
        held_up_s = stood_s + self._stalled_s if self._config.twin else 0.0
        late_s = max(age_s, unheard_s - held_up_s)
        if resting:
            self._rested_ns = now_ns
        if not self.margins.over("late", late_s, most_s):
            return None
        # The one with the largest share.
        if silence_s > late_s / 2:
            what = f"has been silent for {late_s:.2f} s", "check cable and power"
        elif age_s > late_s / 2:
            what = f"is heard {late_s:.2f} s late", "check what delays its network"
        else:
            what = f"hears us {late_s:.2f} s late", "check what delays its network"
        said = late_text(*what, self._config.twin)
        return Trouble(f"robot at {self._config.address} {said}, then reset", lost=True, silent=True)


def _robot_ns(reading: UrReading) -> int:
    return round(reading.robot_s * NANOSECONDS)

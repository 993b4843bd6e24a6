"""Whether a UR's state agrees with itself, and with the set-points that were sent.

A wrong state may lie within every valid range. It shows when two values that depend on each other disagree: joint
angles with joint speeds, the tool's pose with the joint angles. Frozen states agree with themselves, but not with the
set-points. How near honest states come to the limits is in ``docs/explanation/stopping.md``.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.follower import Pose
from bid_ros.robots.ur.kinematics import MODELS
from bid_ros.robots.ur.status import UrReading, apart, pose_from_numbers

# How far a joint may be from where its speed leads: JOINT_RAD, rad, and JOINT_S, s, times its speed. A UR filters its
# speeds, so they come some ms late; 30 ms allow for that and for the change of speed within a period.
JOINT_RAD: Final = 0.02
JOINT_S: Final = 0.03
# Errors add up over about this long, s; older ones are forgotten.
MEMORY_S: Final = 0.5
# No joint of a UR5 turns faster than 3.14 rad/s.
FASTEST: Final = 4.0
# Where states are further apart than this, s, nobody knows the speed between.
GAP_S: Final = 0.0205
# How far the tool may be from where the nominal kinematics put it. A robot's own kinematics are calibrated: its tool is
# some millimetres, up to one or two centimetres, elsewhere. With another model or tool it is further away.
TOOL_M: Final = 0.025
TOOL_RAD: Final = 0.1
# Time between two set-points that are kept.
SPACING_NS: Final = 8_000_000
# The servo lags by its lookahead, by the measured delay, and by up to this more, s.
LAG_S: Final = 0.05
# Largest distance from the set-points on a straight line, on top of the distance at the start.
OFF_M: Final = 0.015
OFF_RAD: Final = 0.1
OFF_JOINT: Final = 0.03  # rad
# Share of the limits that is left when no joint has changed in a single bit for as long as the servo may lag. The arm
# then stands, and an arm that stands must be where it was sent to.
STILL: Final = 0.2


PlaceT = TypeVar("PlaceT")


class Margins(dict[str, float]):
    """Largest share of each limit that was used so far, by the limit's name; above 1 is over it."""

    def over(self, name: str, value: float, limit: float) -> bool:
        """Note that ``value`` was compared with ``limit``; return whether it is over it, as NaN is."""
        share = value / limit
        self[name] = max(self.get(name, 0.0), share)
        return not share <= 1.0


def tool_error(config: UrConfig, reading: UrReading) -> tuple[float, float]:
    """Return how far the robot's tool is from where the nominal kinematics put it, m and rad."""
    nominal = MODELS[config.model].forward(reading.joints, config.tool)
    return apart(pose_from_numbers(nominal.tolist()), reading.pose)


class Consistency:
    """Compares every state of a robot with the one before it and with the arm's kinematics.

    The tool's error against the nominal kinematics is the robot's calibration. It differs from posture to posture, so
    the limit is the error of the first state and TOOL_M, TOOL_RAD more.

    Args:
        config: of the arm, whose tool is set already.
        first: a state.
        now_ns: when that was read, steady nanoseconds.
        period_s: between two states.
        margins: where to note how near to the limits it comes.
    """

    def __init__(self, config: UrConfig, first: UrReading, now_ns: int, period_s: float, margins: Margins) -> None:
        self._config = config
        self._before, self._read_ns = first, now_ns
        self._period_s, self._margins = period_s, margins
        self._off = [0.0] * len(first.joints)
        error_m, error_rad = tool_error(config, first)
        self._most_m, self._most_rad = error_m + TOOL_M, error_rad + TOOL_RAD

    def doubt(self, reading: UrReading, now_ns: int) -> str:
        """Return what in the newest state does not agree, measured value beside the limit; empty if all does."""
        return self._speeds(reading) or self._joints(reading, now_ns) or self._tool(reading)

    def _speeds(self, reading: UrReading) -> str:
        fastest = max(map(abs, reading.joint_speeds))
        if self._margins.over("speed", fastest, FASTEST):
            return f"a joint turns at {fastest:.2f} rad/s; valid is up to {FASTEST:.2f}"
        return ""

    def _joints(self, reading: UrReading, now_ns: int) -> str:
        before, self._before = self._before, reading
        robot_s, ours_s = reading.robot_s - before.robot_s, (now_ns - self._read_ns) / 1e9
        self._read_ns = now_ns
        # By the robot's clock or by ours, whichever agrees better: a clock that is wrong is found out elsewhere.
        # No more than one period of motion is sure: a twin that its computer holds up passes the time without motion.
        low_s, high_s = min(robot_s, ours_s, self._period_s), max(robot_s, ours_s)
        kept = max(0.0, 1.0 - robot_s / MEMORY_S)
        states = zip(before.joints, reading.joints, before.joint_speeds, reading.joint_speeds, strict=True)
        worst = (0.0, 1, 0.0, 1.0)
        for joint, (start, end, speed_then, speed_now) in enumerate(states):
            speed, moved = 0.5 * (speed_then + speed_now), end - start
            low, high = (speed * low_s, speed * high_s) if speed > 0.0 else (speed * high_s, speed * low_s)
            if robot_s > GAP_S:
                low, high = -FASTEST * robot_s, FASTEST * robot_s
            self._off[joint] = off = kept * self._off[joint] + max(moved - high, 0.0) + min(moved - low, 0.0)
            limit = JOINT_RAD + JOINT_S * abs(speed)
            worst = max(worst, (abs(off) / limit, joint + 1, abs(off), limit))
        _, number, off, limit = worst
        if self._margins.over("joint", off, limit):
            return f"joint {number} is {off:.3f} rad from where its speed leads; valid is up to {limit:.3f}"
        return ""

    def _tool(self, reading: UrReading) -> str:
        error_m, error_rad = tool_error(self._config, reading)
        if self._margins.over("tool", error_m, self._most_m):
            mm, most = 1000 * error_m, 1000 * self._most_m
            return f"the tool is {mm:.0f} mm from where the joints put it; valid is up to {most:.0f} mm"
        if self._margins.over("turn", error_rad, self._most_rad):
            return (
                f"the tool is turned by {error_rad:.2f} rad from where the joints put it; "
                f"valid is up to {self._most_rad:.2f}"
            )
        return ""


class _Course(ABC, Generic[PlaceT]):
    """Keeps the set-points of the last moments, as far back as the servo may lag."""

    def __init__(self, config: UrConfig, margins: Margins) -> None:
        self._margins = margins
        self._lag_s = config.lookahead_time_s + LAG_S
        self._cut = config.lookahead_time_s**2 / 2 + 1.0 / config.gain
        self._joints: tuple[float, ...] = ()
        self._moved_ns = 0
        self._sent: deque[tuple[int, PlaceT]] = deque()
        self._news = False  # a set-point was kept since the last comparison

    def _begin(self, sent: PlaceT, now_ns: int) -> None:
        self._sent.clear()
        self._sent.append((now_ns, sent))
        self._news = False

    def sent(self, place: PlaceT, now_ns: int) -> None:
        """Note a set-point and when it was sent, steady nanoseconds."""
        if self._sent and now_ns - self._sent[-1][0] >= SPACING_NS:
            self._sent.append((now_ns, place))
            self._news = True

    def end(self) -> None:
        """Nothing is followed any more."""
        self._sent.clear()
        self._news = False

    def doubt(self, reading: UrReading, state_ns: int, late_s: float) -> str:
        """Return how far the arm was off at ``state_ns``, with the limit; empty if it was not, or follows nothing.

        Args:
            reading: a state.
            state_ns: when it was true, steady nanoseconds.
            late_s: how late the robot hears set-points, and how long it was silent lately.
        """
        if reading.joints != self._joints:
            self._joints, self._moved_ns = reading.joints, state_ns
        lag_s = self._lag_s + late_s
        first_ns = state_ns - round(lag_s * NANOSECONDS)
        sent = self._sent
        while len(sent) > 1 and sent[1][0] <= first_ns:
            sent.popleft()
        if not self._news:
            return ""
        self._news = False
        share, still = (STILL, ", though no joint moves") if self._moved_ns < first_ns else (1.0, "")
        since = f"the set-points of the last {lag_s:.2f} s{still}"
        return self._compared(reading, [place for _, place in sent], share, since)

    @abstractmethod
    def _compared(self, reading: UrReading, sent: list[PlaceT], share: float, since: str) -> str:
        """Return how far a state is off what was sent, beyond ``share`` of the limit; empty if it is not."""


class ToolCourse(_Course[Pose]):
    """Compares where the tool is with the set-points of the last moments, as far back as the servo may lag.

    The tool must lie within the box that holds them, coordinate by coordinate, or near it. What a lag of ``t`` s cuts
    off a curve is ``a t^2 / 2``, and the gain of the servo leaves it ``a / gain`` behind: both are allowed at the
    acceleration that the stream may have.

    Args:
        config: of the arm.
        margins: where to note how near to the limits it comes.
    """

    def __init__(self, config: UrConfig, margins: Margins) -> None:
        super().__init__(config, margins)
        self._most_m = OFF_M + config.max_acceleration * self._cut
        self._most_rad = OFF_RAD + config.max_turn_acceleration * self._cut
        self._start = (0.0, 0.0)

    def begin(self, sent: Pose, measured: Pose, now_ns: int) -> None:
        """A stream of set-points begins at ``sent``, while the tool stands at ``measured``."""
        self._begin(sent, now_ns)
        self._start = apart(sent, measured)

    def _compared(self, reading: UrReading, sent: list[Pose], share: float, since: str) -> str:
        off_m, off_rad = _off(reading.pose, sent)
        most_m, most_rad = self._start[0] + share * self._most_m, self._start[1] + share * self._most_rad
        if self._margins.over("course", off_m, most_m):
            return f"the tool is {1000 * off_m:.0f} mm off {since}; valid is up to {1000 * most_m:.0f} mm"
        if self._margins.over("course turn", off_rad, most_rad):
            return f"the tool is turned by {off_rad:.2f} rad off {since}; valid is up to {most_rad:.2f}"
        return ""


class JointCourse(_Course[tuple[float, ...]]):
    """Compares where the joints are with their set-points of the last moments, as :class:`ToolCourse` for the tool.

    Args:
        config, margins: as :class:`ToolCourse`.
    """

    def __init__(self, config: UrConfig, margins: Margins) -> None:
        super().__init__(config, margins)
        self._most = OFF_JOINT + config.max_joint_acceleration * self._cut
        self._start = 0.0

    def begin(self, sent: tuple[float, ...], measured: tuple[float, ...], now_ns: int) -> None:
        """A stream of set-points begins at ``sent``, while the joints stand at ``measured``."""
        self._begin(sent, now_ns)
        self._start = max(abs(a - b) for a, b in zip(sent, measured, strict=True))

    def _compared(self, reading: UrReading, sent: list[tuple[float, ...]], share: float, since: str) -> str:
        columns = zip(*sent, strict=True)
        off, number = max(
            (max(min(column) - value, value - max(column), 0.0), number)
            for number, (value, column) in enumerate(zip(reading.joints, columns, strict=True), 1)
        )
        most = self._start + share * self._most
        if self._margins.over("course joint", off, most):
            return f"joint {number} is {off:.3f} rad off {since}; valid is up to {most:.3f}"
        return ""


def _off(measured: Pose, sent: list[Pose]) -> tuple[float, float]:
    """Return how far a pose is from the boxes that hold others, about m and rad."""
    # A quaternion and its negative are the same turn.
    sign = math.copysign(1.0, sum(a * b for a, b in zip(measured.quaternion, sent[-1].quaternion, strict=True)))
    turn = tuple(sign * value for value in measured.quaternion)
    place = _outside(measured.position, [pose.position for pose in sent])
    return place, 2.0 * _outside(turn, [pose.quaternion for pose in sent])


def _outside(point: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> float:
    """Return the distance of a point from the smallest box, along the axes, that holds others."""
    total = 0.0
    for value, column in zip(point, zip(*others, strict=True), strict=True):
        off = max(min(column) - value, value - max(column), 0.0)
        total += off * off
    return math.sqrt(total)

"""Whether a UR's state agrees with itself: joint angles with joint speeds, the tool's pose with the joint angles.

A wrong state may lie within every valid range. It shows when two values that depend on each other disagree. How near
honest states come to the limits is in ``docs/explanation/stopping.md``.
"""

from typing import Final

from bid_ros.robots.ur.config import UrConfig
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

"""Whether a UR's state agrees with itself, and with the set-points that were sent.

A wrong state may lie within every valid range. It shows when two values that depend on each other disagree: joint
angles with joint speeds, the tool's pose with the joint angles. Frozen states agree with themselves, but not with the
set-points. How near honest states come to the limits is in ``docs/explanation/stopping.md``.
"""

from typing import Final

from bid_ros.control.spatial import apart
from bid_ros.core.margins import Margins
from bid_ros.robots.consistency import JointTravel
from bid_ros.robots.course import JointCourse, ToolCourse
from bid_ros.robots.ur.config import JOINTS, UrConfig
from bid_ros.robots.ur.kinematics import MODELS
from bid_ros.robots.ur.status import UrReading, pose_from_numbers

# No joint of a UR5 turns faster than 3.14 rad/s. A state that says twice that is damaged.
FASTEST: Final = 4.0
MOST_SPEED: Final = 6.4
# How far a joint may be from where its speed leads, rad, and s, times its speed. A UR filters its speeds, so they come
# some ms late; 30 ms allow for that and for the change of speed within a period. With more, a joint that says 0.1 rad/s
# and stands would be found too late.
JOINT: Final = (0.02, 0.03)
# How far the tool may be from where the nominal kinematics put it. A robot's own kinematics are calibrated: its tool is
# some millimetres, up to one or two centimetres, elsewhere. With another model or tool it is further away.
TOOL_M: Final = 0.025
TOOL_RAD: Final = 0.1
# The servo lags by its lookahead, by the measured delay, and by up to this more, s.
LAG_S: Final = 0.05
# Largest distance from the set-points on a straight line, on top of the distance at the start.
OFF_M: Final = 0.015
OFF_RAD: Final = 0.1
OFF_JOINT: Final = 0.03  # rad


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
        self._read_s, self._read_ns = first.robot_s, now_ns
        self._period_s, self._margins = period_s, margins
        self._travel = JointTravel(first.joints, first.joint_speeds, FASTEST, JOINT, margins, MOST_SPEED)
        error_m, error_rad = tool_error(config, first)
        self._most_m, self._most_rad = error_m + TOOL_M, error_rad + TOOL_RAD

    def doubt(self, reading: UrReading, now_ns: int) -> str:
        """Return what in the newest state does not agree, measured value beside the limit; empty if all does."""
        return self._joints(reading, now_ns) or self._tool(reading)

    def _joints(self, reading: UrReading, now_ns: int) -> str:
        robot_s, ours_s = reading.robot_s - self._read_s, (now_ns - self._read_ns) / 1e9
        self._read_s, self._read_ns = reading.robot_s, now_ns
        # By the robot's clock or by ours, whichever agrees better: a clock that is wrong is found out elsewhere.
        # No more than one period of motion is sure: a twin that its computer holds up passes the time without motion.
        low_s, high_s = min(robot_s, ours_s, self._period_s), max(robot_s, ours_s)
        return self._travel.doubt(reading.joints, reading.joint_speeds, robot_s, (low_s, high_s))

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


def _cut(config: UrConfig) -> float:
    """Return how far, m per m/s^2, a tool may be off its set-points at an acceleration.

    What a lag of ``t`` s cuts off a curve is ``a t^2 / 2``, and the gain of the servo leaves it ``a / gain`` behind.
    """
    return config.lookahead_time_s**2 / 2 + 1.0 / config.gain


def tool_course(config: UrConfig, margins: Margins) -> ToolCourse:
    """Return the comparison of the tool with its set-points, at the acceleration that the stream may have."""
    cut = _cut(config)
    most_m, most_rad = OFF_M + config.max_acceleration * cut, OFF_RAD + config.max_turn_acceleration * cut
    return ToolCourse(config.lookahead_time_s + LAG_S, most_m, most_rad, margins, config.twin)


def joint_course(config: UrConfig, margins: Margins) -> JointCourse:
    """Return the comparison of the joints with their set-points, as :func:`tool_course` for the tool."""
    most = OFF_JOINT + config.max_joint_acceleration * _cut(config)
    return JointCourse(config.lookahead_time_s + LAG_S, (most,) * JOINTS, margins, config.twin)

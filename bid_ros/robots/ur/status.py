"""The reported state of a UR: one sentence on why it cannot go on, and the progress of a joint motion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bid_ros.control.spatial import Pose, apart, turned
from bid_ros.robots.protocol import MotionOutcome

RUNNING: Final = 7  # of robot_mode
PLAYING: Final = 2  # of runtime_state
POWERS: Final = {
    -1: "has no controller",
    0: "is disconnected",
    1: "waits for its safety settings to be confirmed",
    2: "is booting",
    3: "is powered off",
    4: "is powering on",
    5: "has its brakes engaged",
    6: "is in freedrive",
    8: "updates its firmware",
}
# Bits of safety_status_bits, the most severe first.
SAFETY: Final = (
    (9, "reports a safety fault: restart its safety on the pendant"),
    (8, "violated a safety limit: restart its safety on the pendant"),
    (6, "is in an emergency stop by its own button: release it and switch the robot on"),
    (5, "is in an emergency stop by the system's input: release it and switch the robot on"),
    (7, "is in an emergency stop: release it and switch the robot on"),
    (2, "made a protective stop: look at what it met and clear that"),
    (4, "is in a safeguard stop: close the safeguard"),
    (3, "is in recovery mode: move it back inside its safety limits on the pendant"),
    (10, "was stopped by its safety system: look at the pendant"),
)
# A state outside these bounds was damaged on its way.
MOST_RAD: Final = 2 * math.pi + 0.2
MOST_RAD_S: Final = 12.0
MOST_M: Final = 5.0
MOST_NUMBER: Final = 1e3
LONGEST_STEP_S: Final = 3.0  # longer than a twin at rest may be held up
# An arm at rest deviates less than this from its set-point, m and rad.
NEAR_M: Final = 0.03
NEAR_RAD: Final = 0.1
ARRIVED_RAD: Final = 0.005
STILL: Final = 0.01  # rad/s
# s without motion that count as rest. Before that the motion may not have begun.
REST_S: Final = 0.1
BEGIN_S: Final = 0.25
FULL: Final = 0.995  # of the speed slider: what counts as 100 %
NO_POSE: Final = Pose((math.nan, math.nan, math.nan), (math.nan, math.nan, math.nan, math.nan))


@dataclass(frozen=True)
class UrReading:
    """The newest state of the robot, in the terms of UR's RTDE guide.

    Attributes:
        robot_s: the controller's own time in s.
        joints, joint_speeds: ``(6,)`` rad and rad/s.
        pose, target_pose: of the tool, measured and commanded.
        robot_mode, safety_bits, runtime: ``robot_mode``, ``safety_status_bits`` and ``runtime_state``.
        target_joints: ``(6,)`` rad, commanded.
        speed_fraction: where the speed slider of the pendant stands, 0 to 1.
    """

    robot_s: float
    joints: tuple[float, ...]
    joint_speeds: tuple[float, ...]
    pose: Pose
    target_pose: Pose
    robot_mode: int
    safety_bits: int
    runtime: int
    target_joints: tuple[float, ...] = ()
    speed_fraction: float = 1.0


def pose_from_numbers(numbers: Sequence[float]) -> Pose:
    """Return the pose of UR's x y z in m and rotation vector in rad; NaN if it is impossible."""
    x, y, z, u, v, w = numbers
    if not _within(numbers, MOST_NUMBER):
        return NO_POSE
    return Pose((x, y, z), turned((0.0, 0.0, 0.0, 1.0), (u, v, w)))


def trouble(address: str, reading: UrReading) -> str:
    """Return one sentence on why the robot at ``address`` cannot go on; empty if it can."""
    for bit, what in SAFETY:
        if reading.safety_bits >> bit & 1:
            return f"robot at {address} {what}, then reset"
    if reading.robot_mode != RUNNING:
        what = POWERS.get(reading.robot_mode, f"is in the unknown mode {reading.robot_mode}")
        return f"robot at {address} {what}: switch it on and release its brakes on the pendant, then reset"
    return ""


def slowed(address: str, reading: UrReading) -> str:
    """Return one sentence if the pendant's speed slider keeps the robot behind its set-points; empty if not."""
    if reading.speed_fraction > FULL:
        return ""
    return (
        f"robot at {address} runs at {100 * reading.speed_fraction:.0f} % speed, so it cannot follow: set the speed "
        "slider of its pendant to 100 %, then reset; --slow makes a policy slower"
    )


def possible(reading: UrReading, before: UrReading) -> bool:
    """Whether a robot can be in this state shortly after the one before. If not, its data are damaged."""
    return (
        0.0 <= reading.robot_s - before.robot_s <= LONGEST_STEP_S
        and _within(reading.joints, MOST_RAD)
        and _within(reading.joint_speeds, MOST_RAD_S)
        and _within(reading.pose.position, MOST_M)
        and _within(reading.pose.quaternion, 1.001)
        and 0.0 <= reading.speed_fraction <= 1.001
    )


def near(one: Pose, other: Pose) -> bool:
    """Whether an arm that is sent to one pose may stand at the other. No pose is near NaN."""
    metres, radians = apart(one, other)
    # Not `>`, which NaN would pass.
    return metres <= NEAR_M and radians <= NEAR_RAD


def near_joints(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether an arm that is sent to one posture may stand at the other. None is near NaN, or near another number."""
    return len(one) == len(other) and all(abs(a - b) <= NEAR_RAD for a, b in zip(one, other, strict=True))


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

    def outcome(self, reading: UrReading, now_ns: int) -> MotionOutcome:
        """Return the result; ``NONE`` while it goes on."""
        if max(map(abs, reading.joint_speeds)) > STILL:
            self._moving_ns = now_ns
        if now_ns - self._moving_ns < REST_S * 1e9:
            return MotionOutcome.NONE
        if self.stopped:
            return MotionOutcome.STOPPED
        if max(abs(a - b) for a, b in zip(reading.joints, self._goal, strict=True)) < ARRIVED_RAD:
            return MotionOutcome.ARRIVED
        return MotionOutcome.MISSED if now_ns - self._begun_ns > BEGIN_S * 1e9 else MotionOutcome.NONE


def _within(values: Sequence[float], most: float) -> bool:
    # A comparison with NaN is false, so NaN lies within nothing.
    return all(-most <= value <= most for value in values)

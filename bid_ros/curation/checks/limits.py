"""Limits: the commanded and the measured motion beside the limits of the task."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bid_ros.core.task import Task
from bid_ros.curation.commanded import LONGEST_PERIODS, TOLERANCE, CommandedMotion
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import ArmTrack, EpisodeTrack
from bid_ros.safety.envelope import EnvelopeConfig

Array = NDArray[np.float64]
COMMAND_SLACK_M: Final = 0.001
MEASURED_SLACK_M: Final = 0.02  # an arm overshoots its set-point a little
MEASURED_SHARE: Final = 1.5  # of the limit of speed: a difference of two measurements is noisy
SPAN_S: Final = 0.1  # over which a measured speed is taken
TILT_SLACK: Final = 0.02
GRIPPER_SLACK_M: Final = EnvelopeConfig.gripper_tolerance


def check_commanded(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Hold the set-points that were streamed to the robot against the limits."""
    if task is None or track.arm is None:
        return
    arm, limits = track.arm, task.limits
    known = np.isfinite(arm.reference).all(axis=1) & arm.in_control
    at = arm.stamps_ns
    yield from _box(track, "commanded", at[known], arm.reference[known], task, COMMAND_SLACK_M)
    yield from _tilt(track, "commanded", at[known], arm.reference_turn[known], task)
    asked = np.where(known & np.isfinite(arm.asked), arm.asked, limits.gripper_min)
    yield from _opening(track, "commanded", at, asked, task)
    motion = commanded_of(arm)
    if motion is None:
        return
    times = motion.instants_ns
    for what, values, where, most, unit in (
        ("speed", motion.speeds[:, 0], motion.streamed, limits.max_speed, "m/s"),
        ("turn rate", motion.speeds[:, 1], motion.streamed, limits.max_turn_rate, "rad/s"),
        ("acceleration", motion.accelerations[:, 0], motion.continuous, limits.max_acceleration, "m/s^2"),
        ("turn acceleration", motion.accelerations[:, 1], motion.continuous, limits.max_turn_acceleration, "rad/s^2"),
    ):
        shown = np.where(where, values, 0.0)
        yield from _above(track, f"commanded {what}", times[-len(shown) :], shown, most * (1 + TOLERANCE), most, unit)


def commanded_of(arm: ArmTrack) -> CommandedMotion | None:
    """Return the commanded motion of an episode; None if the bag does not say its velocities, or has one state."""
    instants, first = np.unique(arm.instants_ns, return_index=True)
    twists = arm.twist[first]
    if len(instants) < 2 or not np.isfinite(twists).all():
        return None
    healthy, periods = arm.in_control[first], np.diff(instants)
    continuous = healthy[1:] & healthy[:-1] & (periods <= LONGEST_PERIODS * np.median(periods))
    return CommandedMotion(instants, twists, healthy, arm.takeover[first][1:], continuous)


def check_measured(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Hold the measured motion against the limits, with some slack for the noise of a measurement."""
    if task is None:
        return
    limits = task.limits
    known = np.isfinite(track.tool).all(axis=1)
    times, tool = track.tool_ns[known], track.tool[known]
    yield from _box(track, "measured", times, tool, task, MEASURED_SLACK_M)
    speeds = measured_speeds(times, tool)
    most = limits.max_speed
    yield from _above(track, "measured speed", times, speeds, MEASURED_SHARE * most, most, "m/s", warning)
    if track.arm is not None:
        width = np.where(np.isfinite(track.arm.width), track.arm.width, limits.gripper_min)
        yield from _opening(track, "measured", track.arm.stamps_ns, width, task)


def measured_speeds(times_ns: NDArray[np.int64], tool: Array) -> Array:
    """Return the speed ``(K,)`` in m/s of measured positions ``(K, 3)`` over 0.1 s each; 0 where nothing is known."""
    speeds = np.zeros(len(times_ns))
    if len(times_ns) < 2:
        return speeds
    before = np.searchsorted(times_ns, times_ns - int(SPAN_S * 1e9), side="right") - 1
    spans = (times_ns - times_ns[before]) / 1e9
    good = (before >= 0) & (spans > 0.5 * SPAN_S) & (spans < 3 * SPAN_S)
    speeds[good] = np.linalg.norm(tool - tool[before], axis=1)[good] / spans[good]
    return speeds


def _box(
    track: EpisodeTrack, what: str, times: NDArray[np.int64], position: Array, task: Task, slack: float
) -> Iterator[Fault]:
    low, high = np.array(task.limits.workspace_min), np.array(task.limits.workspace_max)
    outside = np.maximum(low - position, position - high)
    if not len(position) or outside.max() <= slack:
        return
    row, axis = np.unravel_index(int(outside.argmax()), outside.shape)
    at = track.seconds(times[row])
    text = (
        f"{what} {'xyz'[axis]} is {position[row, axis]:.3f} m at {at:.1f} s; "
        f"the workspace is {low[axis]:.3f} to {high[axis]:.3f} m"
    )
    yield (error if what == "commanded" else warning)("limits", text, at)


def _tilt(track: EpisodeTrack, what: str, times: NDArray[np.int64], turns: Array, task: Task) -> Iterator[Fault]:
    good = np.linalg.norm(turns, axis=1) > 0.5
    if good.any():
        down = -Rotation.from_quat(turns[good]).as_matrix()[:, 2, 2]
        tilt, most = np.arccos(np.clip(down, -1.0, 1.0)), task.limits.max_tilt
        yield from _above(track, f"{what} tilt from straight down", times[good], tilt, most + TILT_SLACK, most, "rad")


def _opening(track: EpisodeTrack, what: str, times: NDArray[np.int64], width: Array, task: Task) -> Iterator[Fault]:
    low, high = task.limits.gripper_min, task.limits.gripper_max
    outside = np.maximum(low - width, width - high)
    if len(width) and outside.max() > GRIPPER_SLACK_M:
        row = int(outside.argmax())
        at = track.seconds(times[row])
        text = f"{what} gripper width is {width[row]:.4f} m at {at:.1f} s; the range is {low} to {high} m"
        yield (error if what == "commanded" else warning)("limits", text, at)


def _above(
    track: EpisodeTrack,
    what: str,
    times: NDArray[np.int64],
    values: Array,
    valid: float,
    limit: float,
    unit: str,
    fault: Callable[[str, str, float], Fault] = error,
) -> Iterator[Fault]:
    if not len(values) or values.max() <= valid:
        return
    row = int(values.argmax())
    at, number = track.seconds(times[row]), int((values > valid).sum())
    text = f"{what} is {values[row]:.3f} {unit} at {at:.1f} s, {number} times above; the limit is {limit:.3f} {unit}"
    yield fault("limits", text, at)

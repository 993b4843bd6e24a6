"""The commanded motion of a run, how fast it is, and whether it keeps the limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bid_ros.core.errors import RecordingError
from bid_ros.core.limits import Limits
from bid_ros.core.plot_style import BLUE, FAINT, LIMIT, clean, figure_of, legend, save
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS
from bid_ros.curation.track import ArmTrack, EpisodeTrack, Fault, error, warning
from bid_ros.recording.reader import BagReader
from bid_ros.safety.envelope import GRIPPER_TOLERANCE

Array = NDArray[np.float64]
LONGEST_PERIODS: Final = 5  # a longer interval is a gap in the recording
TOLERANCE: Final = 1e-3  # share of a limit, for rounding: times are whole nanoseconds


@dataclass(frozen=True, eq=False)
class CommandedMotion:
    """The K set-points of one run, in order of time. There are ``K - 1`` intervals between them.

    The arm node publishes one set-point in ``publish_every``. So an acceleration is the mean over that many steps of
    the servo, which is a lower bound of the largest one.

    Attributes:
        instants_ns: ``(K,)`` times for which they were computed, ROS time.
        twists: ``(K, 6)`` m/s and rad/s, base axes.
        streamed: ``(K,)`` whether the arm was in control: in a fault nothing is sent to it.
        takeovers: ``(K - 1,)`` whether another chunk took over in the interval.
        continuous: ``(K - 1,)`` whether the interval has no gap and the arm was in control throughout.
    """

    instants_ns: NDArray[np.int64]
    twists: Array
    streamed: NDArray[np.bool_]
    takeovers: NDArray[np.bool_]
    continuous: NDArray[np.bool_]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """``(K - 1,)`` intervals that show a takeover: its own and the next, as it may fall on the end of its own."""
        shown = self.takeovers.copy()
        shown[1:] |= self.takeovers[:-1]
        return shown

    @property
    def speeds(self) -> Array:
        """``(K, 2)`` m/s and rad/s."""
        return _lengths(self.twists)

    @property
    def accelerations(self) -> Array:
        """``(K - 1, 2)`` m/s^2 and rad/s^2: step of the velocity over the time it took."""
        return _lengths(np.diff(self.twists, axis=0)) / (np.diff(self.instants_ns)[:, None] / 1e9)


def _lengths(twists: Array) -> Array:
    """Return the lengths ``(K, 2)`` of both parts of twists ``(K, 6)``."""
    lengths: Array = np.linalg.norm(twists.reshape(-1, 2, 3), axis=2)
    return lengths


def set_points(bag: Path) -> Iterator[tuple[int, Any]]:
    """Yield each status of the arm in a bag, after the instant of its set-point in ns.

    Raises:
        RecordingError: the bag cannot be read, or its set-points have no times.
    """
    with BagReader(bag) as reader:
        for item in reader.messages([ARM_STATUS]):
            if not hasattr(item.message, "reference_stamp"):
                raise RecordingError(f"bag {bag} was recorded before set-points carried their instants; record anew")
            yield stamp_to_ns(item.message.reference_stamp), item.message


def read_commanded(bag: Path) -> CommandedMotion:
    """Return the set-points of a bag.

    Raises:
        RecordingError: the bag cannot be read, has no motion, is too old (its set-points have no times), or has a
            set-point that is not finite.
    """
    rows: dict[int, tuple[Any, bool, tuple[str, int]]] = {}
    for instant_ns, message in set_points(bag):
        rows[instant_ns] = message.reference_twist, message.mode != message.FAULT, (message.source, message.sequence)
    if len(rows) < 2:
        raise RecordingError(f"bag {bag} holds {len(rows)} set-point(s) on {ARM_STATUS}; valid is 2 or more")
    instants = sorted(rows)
    twists, healthy, chunks = zip(*(rows[instant] for instant in instants), strict=True)
    times, velocities, streamed = np.array(instants), np.array(twists, dtype=np.float64), np.array(healthy)
    bad = np.flatnonzero(~np.isfinite(velocities).all(axis=1))
    if len(bad):
        raise RecordingError(f"bag {bag}: set-point {bad[0]} on {ARM_STATUS} is not finite; valid are finite numbers")
    periods = np.diff(times)
    takeovers = np.array([bool(first[0] and second[0]) and first != second for first, second in pairwise(chunks)])
    unbroken = periods <= LONGEST_PERIODS * np.median(periods)
    return CommandedMotion(times, velocities, streamed, takeovers, streamed[1:] & streamed[:-1] & unbroken)


def commanded_report(motion: CommandedMotion, limits: Limits) -> dict[str, Any]:
    """Return percentiles beside the limits, at changes of chunk and elsewhere, and how often a limit was exceeded."""
    at, elsewhere = motion.changed & motion.continuous, ~motion.changed & motion.continuous
    (speeds, turn_rates), (moving, turning) = motion.speeds[motion.streamed].T, motion.accelerations.T
    rows = [
        ("speed, m/s", speeds, limits.max_speed),
        ("turn rate, rad/s", turn_rates, limits.max_turn_rate),
        ("acceleration at a change of chunk, m/s^2", moving[at], limits.max_acceleration),
        ("acceleration elsewhere, m/s^2", moving[elsewhere], limits.max_acceleration),
        ("turning at a change of chunk, rad/s^2", turning[at], limits.max_turn_acceleration),
        ("turning elsewhere, rad/s^2", turning[elsewhere], limits.max_turn_acceleration),
    ]
    return {
        "set_points": len(motion.instants_ns),
        "seconds": float(motion.instants_ns[-1] - motion.instants_ns[0]) / 1e9,
        "changes_of_chunk": int((motion.takeovers & motion.continuous).sum()),
        "left_out": int((~motion.continuous).sum()),
        "quantities": {name: _percentiles(values, limit) for name, values, limit in rows},
    }


def _percentiles(values: Array, limit: float) -> dict[str, float | int | None]:
    numbers = [float(value) for value in np.percentile(values, (50, 99, 100))] if len(values) else [None] * 3
    above = int((values > limit * (1 + TOLERANCE)).sum())
    return {**dict(zip(("p50", "p99", "max"), numbers, strict=True)), "limit": limit, "above": above}


COMMAND_SLACK_M: Final = 0.001
MEASURED_SLACK_M: Final = 0.02  # an arm overshoots its set-point a little
MEASURED_SHARE: Final = 1.5  # of the limit of speed: a difference of two measurements is noisy
SPAN_S: Final = 0.1  # over which a measured speed is taken
TILT_SLACK: Final = 0.02


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
    if len(width) and outside.max() > GRIPPER_TOLERANCE:
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


def commanded_table(report: dict[str, Any]) -> str:
    """Return the report as a table."""
    lines = [
        f"{report['set_points']} set-points in {report['seconds']:.1f} s, changes of chunk: "
        f"{report['changes_of_chunk']}, left out (faults, gaps): {report['left_out']}",
        f"{'':42}{'p50':>8}{'p99':>8}{'max':>8}{'limit':>8}{'above':>7}",
    ]
    for name, row in report["quantities"].items():
        numbers = "".join(f"{'-' if row[key] is None else format(row[key], '.3f'):>8}" for key in ("p50", "p99", "max"))
        lines.append(f"{name:42}{numbers}{row['limit']:8g}{row['above']:7d}")
    return "\n".join(lines)


def draw_commanded(motion: CommandedMotion, limits: Limits, path: Path) -> None:
    """Write a PNG: speed and acceleration of the set-point over time, changes of chunk marked, limits as lines."""
    seconds = (motion.instants_ns - motion.instants_ns[0]) / 1e9
    figure = figure_of(9.0, 4.5)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(seconds, motion.speeds[:, 0], color=BLUE, linewidth=0.8)
    above.axhline(limits.max_speed, color=LIMIT, linewidth=1.0, linestyle="--")
    above.set_ylabel("speed, m/s")
    for shown, color, label in ((~motion.changed, FAINT, "elsewhere"), (motion.changed, BLUE, "at a change of chunk")):
        shown = shown & motion.continuous
        below.plot(seconds[1:][shown], motion.accelerations[shown, 0], ".", color=color, markersize=3, label=label)
    below.axhline(limits.max_acceleration, color=LIMIT, linewidth=1.0, linestyle="--", label="limit")
    below.set(xlabel="s", ylabel="acceleration, m/s²")
    clean(above)
    clean(below)
    legend(figure, below)
    save(figure, path)

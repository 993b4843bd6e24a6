"""Checks of what happens in an episode: its end, idle time, the grasp, frozen images and states."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, COMPRESSED_IMAGE_TYPE, IMAGE_TYPE
from bid_ros.curation.check_messages import NOT_HELD
from bid_ros.curation.track import ArmTrack, EpisodeTrack, Fault, Series, error, warning
from bid_ros.recording.dataset import MOVED_M
from bid_ros.system.driving import MINUTES
from bid_ros.tasks.registry import TASKS, setup_of

SHORTEST_S: Final = 0.5
LAST_S: Final = 0.3


def check_ending(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Look at how the episode ended."""
    recorded = track.recorded
    if recorded.episode is None:
        text = "the bag has no event of an episode, so nothing says where it begins, ends, or whether it succeeded"
        yield warning("ending", f"{text}; valid is a START and an END on episode/event")
        return
    if recorded.episode.end_ns is None:
        text = "the episode has no END: its recording stopped, or another episode began; a data set leaves it out"
        yield error("ending", text)
    elif recorded.episode.outcome_class in (SAFETY, INFRASTRUCTURE):
        yield warning("ending", f"the episode did not run to its end: {recorded.outcome}")
    elif track.arm is not None and _stops_early(track.arm):
        at = track.seconds(track.arm.stamps_ns[int(np.argmax(track.arm.stopped))])
        yield warning("ending", f"the arm stops at {at:.1f} s, although the episode goes on; valid is no stop", at)
    if recorded.duration_s < SHORTEST_S:
        text = f"the episode lasts {recorded.duration_s:.2f} s; valid is {SHORTEST_S} s or more"
        yield warning("ending", text)
    elif task is not None and recorded.duration_s > max(1.5 * task.episode_timeout, 1.05 * MINUTES):
        allowed = f"the task allows {task.episode_timeout:g} s, and a person {MINUTES:g} s"
        text = f"the episode lasts {recorded.duration_s:.1f} s; {allowed}"
        yield warning("ending", text)


def _stops_early(arm: ArmTrack) -> bool:
    """Whether the arm stops before the last moments, in which the end of the episode may already have arrived."""
    return bool((arm.stopped & (arm.stamps_ns < arm.stamps_ns[-1] - int(LAST_S * 1e9))).any())


SHARE: Final = 1 / 3
LEAST_S: Final = 1.0


def check_still(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Find arms that never move, or not in the last third of the episode. A moving gripper counts as motion."""
    times, values = track.tool_ns, track.tool
    if track.arm is not None:
        times = track.arm.stamps_ns
        values = np.column_stack([track.arm.reference, np.nan_to_num(track.arm.width)])
        values = np.where(np.isfinite(values), values, np.nan_to_num(values[-1]))
    if len(times) < 2:
        return
    away = np.linalg.norm(values - values[-1], axis=1) > MOVED_M
    if not away.any():
        text = f"the arm never moves by {1000 * MOVED_M:g} mm in {track.recorded.duration_s:.1f} s; valid is motion"
        yield error("still", text)
        return
    last = int(np.flatnonzero(away)[-1])
    rest, at = (times[-1] - times[last]) / 1e9, track.seconds(times[last])
    if rest > max(LEAST_S, SHARE * track.recorded.duration_s):
        text = (
            f"the arm is still from {at:.1f} s on, for {rest:.1f} s of {track.recorded.duration_s:.1f} s; "
            f"valid is up to a third: bid episodes trim cuts it off"
        )
        yield warning("still", text, at)


END_S: Final = 0.2  # over which the motion of the gripper is seen at the end
CLOSING_M: Final = 0.002  # by which it closes in that time
ASKED_M: Final = 0.002  # by which a width asked for lies below the measured one
EMPTY_M: Final = 0.002  # of opening above the smallest, with nothing between the fingers


def check_grasp(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Look at the gripper during the episode and at its end."""
    arm = track.arm
    if arm is None or not np.isfinite(arm.width).any():
        return
    yield from _cut_off(track, arm)
    if task is None or _grasps(task):
        yield from _empty(track, arm, 0.0 if task is None else task.limits.gripper_min)
    if task is not None and _lets_go(task) and track.recorded.success and _holds(arm):
        at = track.seconds(arm.stamps_ns[-1])
        text = "the episode counts as a success, but the gripper still holds on at its end; valid is to let go"
        yield error("grasp", text, at)


def _grasps(task: Task) -> bool:
    """Whether closed fingers are to hold something. Of rules that say nothing of the fingers, they may push."""
    return not task.success or any(rule.rule in ("held", "released") for rule in task.success)


def _lets_go(task: Task) -> bool:
    """Whether an episode begins with something held, so that a success has let go of it."""
    return task.kind in TASKS.names() and setup_of(task).held is not None


def _holds(arm: ArmTrack) -> bool:
    return bool(arm.asked[-1] < arm.width[-1] - ASKED_M)


def _cut_off(track: EpisodeTrack, arm: ArmTrack) -> Iterator[Fault]:
    recent = arm.width[arm.stamps_ns >= arm.stamps_ns[-1] - int(END_S * 1e9)]
    closing = float(recent[0] - recent[-1])
    if _holds(arm) and (closing > CLOSING_M or bool(arm.busy[-1])):
        at = track.seconds(arm.stamps_ns[-1])
        text = (
            f"the episode ends at {at:.1f} s while the gripper closes ({1000 * arm.width[-1]:.0f} mm, asked for "
            f"{1000 * arm.asked[-1]:.0f} mm), so the grasp is cut off; valid is an end after the grasp"
        )
        yield error("grasp", text, at)


def _empty(track: EpisodeTrack, arm: ArmTrack, smallest: float) -> Iterator[Fault]:
    shut = (arm.width <= smallest + EMPTY_M) & ~arm.busy & (arm.asked <= smallest + EMPTY_M)
    opened = np.flatnonzero(arm.width > smallest + 5 * EMPTY_M)
    # Only a gripper that was open has closed.
    found = np.flatnonzero(shut & (np.arange(len(shut)) > (opened[0] if len(opened) else len(shut))))
    if len(found):
        at = track.seconds(arm.stamps_ns[found[0]])
        text = f"the gripper is shut at {at:.1f} s ({1000 * arm.width[found[0]]:.1f} mm), so it closed on nothing"
        yield warning("grasp", f"{text}; valid is an object between the fingers", at)


FRAMES: Final = 3  # equal images in a row that are no chance
SEEN_M: Final = 0.01  # motion of the tool that a camera must show
FROZEN_S: Final = 1.0  # of equal images, where no arm says whether something moved
ARM_S: Final = 0.3
ARM_MOVED_M: Final = 0.02


def check_repeated(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Find sensor messages with the stamp of the one before."""
    for topic, series in track.series.items():
        if series.header_ns is None or series.type_name in NOT_HELD:
            continue
        repeated = np.flatnonzero(np.diff(series.header_ns) == 0)
        if len(repeated):
            at = track.seconds(series.log_ns[repeated[0] + 1])
            text = f"{topic}: {len(repeated)} messages repeat the stamp before, first at {at:.1f} s; valid is a new one"
            yield warning("stale", text, at)


def check_frozen_images(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Find cameras that repeat one image although the tool moves, or, without an arm, for a second."""
    for topic, series in track.series.items():
        if series.type_name not in (IMAGE_TYPE, COMPRESSED_IMAGE_TYPE) or not len(series.marks):
            continue
        found = [(last, first) for first, last in _runs(series.marks) if last - first + 1 >= FRAMES]
        frozen = [(first, last) for last, first in found if _matters(track, series, first, last)]
        if frozen:
            first, last = max(frozen, key=lambda run: run[1] - run[0])
            at, seconds = track.seconds(series.log_ns[first]), (series.log_ns[last] - series.log_ns[first]) / 1e9
            known = len(track.tool) > 0
            why = "although the tool moves" if known else "and nothing says that the arm stood still"
            number = "" if len(frozen) == 1 else f"{len(frozen)} times; the longest: "
            text = f"{topic}: {number}{last - first + 1} equal images in {seconds:.1f} s at {at:.1f} s, {why}; "
            yield (error if known else warning)("stale", f"{text}valid is up to {FRAMES - 1}", at)


def _runs(marks: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and the last index of each run of equal values."""
    cuts = np.flatnonzero(np.diff(marks)) + 1
    firsts, lasts = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(marks)]]) - 1
    return [(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def _matters(track: EpisodeTrack, series: Series, first: int, last: int) -> bool:
    begin, end = series.times_ns[first], series.times_ns[last]
    if not len(track.tool):
        return bool(end - begin >= FROZEN_S * 1e9)
    inside = track.tool[(track.tool_ns >= begin) & (track.tool_ns <= end)]
    return len(inside) > 1 and float(np.linalg.norm(np.ptp(inside, axis=0))) > SEEN_M


def check_frozen_arm(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Find times in which the measured tool repeats one value although the set-point moves."""
    arm = track.arm
    if arm is None or not np.isfinite(arm.tool).any():
        return
    changed = np.any(np.diff(arm.tool, axis=0) != 0, axis=1)
    marks = np.concatenate([[0], np.cumsum(changed)]).astype(np.int64)
    for first, last in _runs(marks):
        seconds = (arm.stamps_ns[last] - arm.stamps_ns[first]) / 1e9
        moved = float(np.linalg.norm(np.ptp(arm.reference[first : last + 1], axis=0)))
        if seconds >= ARM_S and moved > ARM_MOVED_M:
            at = track.seconds(arm.stamps_ns[first])
            text = (
                f"{track.names[ARM_STATUS]}: the measured tool repeats one value for {seconds:.1f} s at {at:.1f} s, "
                f"although the set-point moves by {1000 * moved:.0f} mm; valid is a measurement for each state"
            )
            yield error("stale", text, at)
            return

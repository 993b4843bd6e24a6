"""Stale data: repeated stamps, frozen images, an arm whose measurements stand still."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, COMPRESSED_IMAGE_TYPE, IMAGE_TYPE
from bid_ros.curation.checks.clock import NOT_HELD
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import EpisodeTrack, Series

FRAMES: Final = 3  # equal images in a row that are no chance
MOVED_M: Final = 0.01  # motion of the tool that a camera must show
FROZEN_S: Final = 1.0  # of equal images, where no arm says whether something moved
ARM_S: Final = 0.3
ARM_MOVED_M: Final = 0.02


def check_repeated(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find sensor messages with the stamp of the one before."""
    del task
    for topic, series in track.series.items():
        if series.header_ns is None or series.type_name in NOT_HELD:
            continue
        repeated = np.flatnonzero(np.diff(series.header_ns) == 0)
        if len(repeated):
            at = track.seconds(series.log_ns[repeated[0] + 1])
            text = f"{topic}: {len(repeated)} messages repeat the stamp before, first at {at:.1f} s; valid is a new one"
            yield warning("stale", text, at)


def check_frozen_images(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find cameras that repeat one image although the tool moves, or, without an arm, for a second."""
    del task
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
    return len(inside) > 1 and float(np.linalg.norm(np.ptp(inside, axis=0))) > MOVED_M


def check_frozen_arm(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find times in which the measured tool repeats one value although the set-point moves."""
    del task
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

"""Gaps and drops: messages that should be there and are not."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import TaskError
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, camera_topic, feature_topic
from bid_ros.curation.checks.clock import NOT_HELD
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import EpisodeTrack, Series

# A data set interpolates between two states that are at most 80 ms away from a frame.
LONGEST_STATE_S: Final = 0.16
LONGEST_PERIODS: Final = 1.5  # between two frames, as a data set splits an episode there
DELAY_S: Final = 0.25  # by which a message may arrive late, at the begin and the end of an episode
LEAST: Final = 10  # messages from which the rate of a topic shows
REGULAR: Final = 1.5  # a topic has a rate if seven of ten intervals are shorter than this many periods
LOST_SHARE: Final = 0.05
IRREGULAR_PERIODS: Final = 5.0


def longest_intervals(task: Task) -> dict[str, float]:
    """Return the longest valid time in s between two messages, by each topic that the task needs."""
    longest = {ARM_STATUS: LONGEST_STATE_S}
    for feature in task.observation:
        try:
            topic = feature_topic(feature)
        except TaskError:
            continue  # a check of the topics says so
        period = 1 / task.rate_hz if feature.kind == "image" else max(1 / task.rate_hz, 1 / feature.rate_hz)
        longest.setdefault(topic, LONGEST_PERIODS * period)
    return longest


def check_gaps(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find times without a message of a topic: against the task's rate, or against five median periods."""
    needed = {} if task is None else longest_intervals(task)
    for topic, valid in needed.items():
        series = track.series_of(topic)
        if series is not None:
            yield from _gaps(track, topic, series, valid, True)
    known = {track.names.get(topic, topic) for topic in needed}
    for topic, series in track.series.items():
        period = median_period(series)
        if topic not in known and period is not None:
            yield from _gaps(track, topic, series, max(0.5, IRREGULAR_PERIODS * period), False)


def _gaps(track: EpisodeTrack, topic: str, series: Series, valid: float, needed: bool) -> Iterator[Fault]:
    log = series.log_ns
    edges = [(log[0] - track.recorded.begin_ns) / 1e9 - DELAY_S, (track.recorded.end_ns - log[-1]) / 1e9 - DELAY_S]
    intervals = np.array([edges[0], *_intervals(series), edges[1]])
    long = np.flatnonzero(intervals > valid)
    if not len(long):
        return
    worst = int(intervals.argmax())
    length = intervals[worst] + (DELAY_S if worst in (0, len(intervals) - 1) else 0.0)
    at = 0.0 if worst == 0 else track.seconds(log[worst - 1])
    number = "" if len(long) == 1 else f"{len(long)} gaps, in the longest "
    text = f"{topic}: {number}no message for {length:.2f} s at {at:.1f} s; valid is up to {valid:.2f} s"
    yield (error if needed else warning)("gaps", text, at)


def median_period(series: Series) -> float | None:
    """Return the median time in s between two messages of a topic; None if it has no rate."""
    if len(series.log_ns) < LEAST:
        return None
    intervals = _intervals(series)
    period = float(np.median(intervals))
    regular = period > 0 and np.percentile(intervals, 70) < REGULAR * period
    return period if regular and np.percentile(intervals, 10) > period / (2 * REGULAR) else None


def _intervals(series: Series) -> NDArray[np.float64]:
    """Return the times in s between the messages of a topic."""
    return np.diff(np.sort(series.times_ns)).astype(np.float64) / 1e9


def check_drops(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Count messages that are missing in a steady stream."""
    del task
    for topic, series in track.series.items():
        period = median_period(series)
        if period is None or series.type_name in NOT_HELD:
            continue
        intervals = _intervals(series)
        # A late message and an early one after it are no loss, so the whole time counts too.
        skipped = int(np.maximum(np.round(intervals / period) - 1, 0).sum())
        missing = min(skipped, round(float(intervals.sum()) / period) - len(intervals))
        share = missing / (missing + len(series.log_ns))
        if missing > 2 and share > LOST_SHARE:
            where = track.seconds(series.log_ns[int(intervals.argmax())])
            text = (
                f"{topic}: {missing} of {missing + len(series.log_ns)} messages are missing ({share:.0%}) at "
                f"{1 / period:.3g} Hz, the longest row of them at {where:.1f} s; valid is up to {LOST_SHARE:.0%}"
            )
            yield warning("drops", text, where)


def check_pairs(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Count frames without a partner: the cameras of one pair share the stamp."""
    if task is None or len(task.cameras) < 2:
        return
    stamps: Mapping[str, set[int]] = {
        camera.name: set(series.header_ns.tolist())
        for camera in task.cameras
        if (series := track.series_of(camera_topic(camera.name))) is not None and series.header_ns is not None
    }
    if len(stamps) < len(task.cameras):
        return
    every, common = set.union(*stamps.values()), set.intersection(*stamps.values())
    alone = sorted(every - common)
    # The first and the last frame of an episode may have their partner outside.
    if len(alone) > 2:
        text = (
            f"{len(alone)} of {len(every)} stamps of frames are not on all of {', '.join(sorted(stamps))}, the first "
            f"at {track.seconds(alone[0]):.1f} s; valid is the same stamp on every camera"
        )
        yield error("pairs", text, track.seconds(alone[0]))

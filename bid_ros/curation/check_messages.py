"""Checks of messages: topics that lack or have a wrong type, clocks that disagree, gaps and drops."""

import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from mcap.exceptions import McapError
from mcap.reader import make_reader
from numpy.typing import NDArray

from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    ARM_STATUS,
    CHUNK_TYPE,
    CLOCK,
    EPISODE_EVENT,
    TOPICS,
    Topic,
    camera_topic,
    feature_topic,
    recorded_topics,
)
from bid_ros.curation.track import EpisodeTrack, Fault, Series, error, warning
from bid_ros.observing.features import carries, extract
from bid_ros.recording.bag_topics import wrong_type
from bid_ros.recording.files import MCAP, bag_files
from bid_ros.recording.reader import BagReader

SHOWN: Final = 3


def check_topics(reader: BagReader, task: Task | None) -> Iterator[Fault]:
    """Find topics that the task needs and the bag lacks, has with another type or size, or cannot be decoded."""
    types = reader.topics
    for name, kind in types.items():
        if " and " in kind:
            yield error("topics", f"{name} has the types {kind}; valid is one type for a topic")
    if not reader.has_definitions:
        text = "the bag holds no definitions of its messages, so those of ROS 2 Jazzy are taken"
        yield warning("topics", f"{text}; valid is a bag with definitions, as rosbag2 writes since ROS 2 Iron")
    if task is None:
        return
    known = recorded_topics(task)
    older = reader.is_older
    features = {feature.name: feature for feature in task.observation}
    topics: dict[str, list[Feature]] = {ARM_STATUS: [], EPISODE_EVENT: []}
    for feature in features.values():
        try:
            topics.setdefault(feature_topic(feature, older), []).append(feature)
        except TaskError as problem:
            yield error("topics", str(problem))
    for topic, wanted in topics.items():
        yield from _needed(reader, topic, known[topic], wanted)


def _needed(reader: BagReader, topic: str, about: Topic, wanted: list[Feature]) -> Iterator[Fault]:
    name = reader.recorded_name(topic)
    kind = reader.topics.get(name)
    if kind is None:
        yield error("topics", f"the bag lacks {topic} ({about.type_name}){_hint(reader.topics, topic, about)}")
    elif why := wrong_type(reader, topic, about):
        yield error("topics", why)
    elif not reader.counts[name]:
        yield error("topics", f"{name} has no message; valid is one or more")
    else:
        yield from _first(reader, topic, wanted)


def _hint(types: Mapping[str, str], topic: str, about: Topic) -> str:
    """Return which topics of the bag have the type that is needed, and how one is taken instead."""
    same = sorted(name for name, kind in types.items() if kind == about.type_name)
    if not same:
        return "; valid is a bag that holds it"
    more = f" and {len(same) - SHOWN} more" if len(same) > SHOWN else ""
    return f"; of that type it has {', '.join(same[:SHOWN])}{more}: take one with --remap {topic}:={same[0]}"


def _first(reader: BagReader, topic: str, wanted: list[Feature]) -> Iterator[Fault]:
    """Hold the first message of each of the task's features against it."""
    try:
        for feature in wanted:
            item = next((item for item in reader.messages([topic]) if carries(feature, item.message)), None)
            if item is not None:
                extract(feature, item.message)
    except BidError as problem:
        yield error("topics", str(problem))


# Several nodes send these, or their stamps are of another time than that of sending.
NOT_HELD: Final = {
    CHUNK_TYPE,
    *(TOPICS[name].type_name for name in ("heartbeat", "grant", "policy/decision", "episode/event")),
    *(TOPICS[name].type_name for name in ("/diagnostics", "/tf", "/rosout")),
}
FUTURE_S: Final = 0.05
OLD_S: Final = 0.5
OTHER_CLOCK_S: Final = 86400.0
SIMULATED: Final = f"/{CLOCK}"  # a bag with this topic is one of simulated time
JUMP_S: Final = 0.1
DRIFT_S: Final = 0.03
BLOCKS: Final = 8
DRIFT_LEAST: Final = 5 * BLOCKS  # messages from which a drift shows
BACK_S: Final = 0.5


def check_clock(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Find stamps that lie in the future, are old, go backwards, jump or drift against the recorder's clock."""
    for topic, series in track.series.items():
        if series.header_ns is not None and series.type_name not in NOT_HELD:
            yield from _held(track, topic, series, (series.log_ns - series.header_ns) / 1e9)


def _held(track: EpisodeTrack, topic: str, series: Series, ages: NDArray[np.float64]) -> Iterator[Fault]:
    assert series.header_ns is not None
    steps = np.diff(series.header_ns) / 1e9
    if len(steps) and steps.min() < 0:
        at = track.seconds(series.log_ns[int(steps.argmin()) + 1])
        number = int((steps < 0).sum())
        text = f"{topic}: {number} stamps go backwards, by up to {-steps.min():.3f} s at {at:.1f} s; valid is forwards"
        yield (error if -steps.min() > JUMP_S else warning)("clock", text, at)
    if abs(float(np.median(ages))) > OTHER_CLOCK_S:
        begin, log = series.header_ns[0] / 1e9, series.log_ns[0] / 1e9
        text = (
            f"{topic}: the stamps are of another clock than the recorder's: they begin at {begin:.2f} s, it at "
            f"{log:.2f} s; valid is one clock, or stamps of simulated time"
        )
        if SIMULATED not in track.series:
            yield warning("clock", text)
        return
    # Delays only make messages older, so the smallest age of a while is that of the clocks.
    floors = [float(block.min()) for block in np.array_split(ages, BLOCKS)] if len(ages) >= DRIFT_LEAST else []
    jumps = [abs(after - before) for before, after in pairwise(floors)]
    if jumps and max(jumps) > JUMP_S:
        number = int(np.argmax(jumps)) + 1
        at = track.seconds(series.log_ns[len(ages) * number // BLOCKS])
        change = floors[number] - floors[number - 1]
        text = f"{topic}: the stamps jump by {-change:+.3f} s against the recorder's clock near {at:.1f} s; valid is 0"
        yield error("clock", text, at)
    elif floors and abs(floors[-1] - floors[0]) > max(DRIFT_S, sum(jumps) / 1.5):
        drift = floors[0] - floors[-1]
        text = f"{topic}: the stamps drift by {drift:+.3f} s against the recorder's clock; valid is up to {DRIFT_S} s"
        yield warning("clock", text)
    if ages.min() < -FUTURE_S:
        at = track.seconds(series.log_ns[int(ages.argmin())])
        text = (
            f"{topic}: stamps lie up to {-ages.min():.3f} s in the future of the recorder's clock; valid is up to "
            f"{FUTURE_S} s, so the clocks of the computers must be synchronised"
        )
        yield error("clock", text, at)
    elif np.median(ages) > OLD_S:
        text = f"{topic}: messages are {np.median(ages):.2f} s old when they are received; valid is up to {OLD_S} s"
        yield warning("clock", text)


def check_recorder_clock(bag: Path) -> Iterator[Fault]:
    """Find where the clock of the recorder went backwards, from the index of the bag's chunks in the MCAP files."""
    latest = 0
    for file in (file for file in bag_files(bag) if file.suffix == MCAP):
        try:
            with file.open("rb") as stream:
                summary = make_reader(stream).get_summary()
        except (McapError, struct.error, ValueError):
            continue  # without an index; what is wrong with the file is said when it is read
        indexes = [] if summary is None else sorted(summary.chunk_indexes, key=lambda index: index.chunk_start_offset)
        for index in indexes:
            if 0 < index.message_end_time < latest - BACK_S * 1e9:
                back = (latest - index.message_end_time) / 1e9
                text = (
                    f"the recorder's clock went back by about {back:.1f} s while it recorded; valid is a clock that "
                    "only goes forwards, so do not step the clock of a computer that records"
                )
                yield error("clock", text)
                return
            latest = max(latest, index.message_end_time)


# A data set interpolates between two states that are at most 80 ms away from a frame.
LONGEST_STATE_S: Final = 0.16
LONGEST_PERIODS: Final = 1.5  # between two frames, as a data set splits an episode there
DELAY_S: Final = 0.25  # by which a message may arrive late, at the begin and the end of an episode
RATE_LEAST: Final = 10  # messages from which the rate of a topic shows
REGULAR: Final = 1.5  # an interval is regular if it is shorter than this many periods
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
    if len(series.log_ns) < RATE_LEAST:
        return None
    intervals = _intervals(series)
    period = float(np.median(intervals))
    # What comes in bursts has no rate: seven of ten intervals are regular, and these fill half of the time.
    near = intervals[intervals < REGULAR * period]
    regular = period > 0 and len(near) > 0.7 * len(intervals) and near.sum() > intervals.sum() / 2
    return period if regular and np.percentile(intervals, 10) > period / (2 * REGULAR) else None


def _intervals(series: Series) -> NDArray[np.float64]:
    """Return the times in s between the messages of a topic."""
    return np.diff(np.sort(series.times_ns)).astype(np.float64) / 1e9


def check_drops(track: EpisodeTrack, _task: Task | None) -> Iterator[Fault]:
    """Count messages that are missing in a steady stream."""
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

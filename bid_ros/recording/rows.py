"""The rows that the episodes of a bag give, made with the observation code that runs live."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ObservationError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.task import Task
from bid_ros.core.topics import feature_topic, recorded_topics
from bid_ros.observing.features import carries, extract
from bid_ros.recording.bag_topics import check_types
from bid_ros.recording.dataset import Dataset, first_row
from bid_ros.recording.episodes import RecordedEpisode, find_episodes, unwanted
from bid_ros.recording.outcomes import SUCCESS
from bid_ros.recording.reader import BagReader
from bid_ros.recording.references import References
from bid_ros.recording.sample_times import SampleTimes

LAG_NS: Final = 1_000_000_000  # a message from before END may be received this long after it


def check_observed(task: Task) -> None:
    """Raise for a task whose topics no bag has (TaskError), or whose actions are not recorded (RecordingError)."""
    References(task)
    _features_by_topic(task)


def read_episodes(
    reader: BagReader, task: Task, wanted: str = SUCCESS, first: int = 0
) -> Iterator[tuple[RecordedEpisode, list[Dataset], list[str]]]:
    """Yield the episodes of a bag with their rows; those of one are in memory.

    There is one row per frame pair (every ``task.dt_ns``) from START to END. Its observations are the newest row that
    an :class:`ObservationBuffer` assembles when the pair arrives, exactly as live. Its action is the reference that was
    streamed to the robot at the stamp of the frames. Still rows at the start are dropped, except three. Where a frame
    or an action is missing, the episode is split into two (``Dataset.truncated`` marks the first). One without END, or
    that a person discarded or took back, is always left out.

    Args:
        reader: the bag.
        task: what is observed and commanded.
        wanted: one of :data:`bid_ros.recording.outcomes.OUTCOMES`. Of the other episodes nothing is read.
        first: number of the first episode, in the order of the bag.

    Yields:
        The episode, its segments (none: it is left out), and the reasons for everything that is left out.

    Raises:
        RecordingError: the bag is damaged, or has a topic with another type.
    """
    recorded = task.with_frame_prefix(reader.frame_prefix)
    check_types(reader, task, _features_by_topic(task, reader.is_older))
    for episode in find_episodes(reader)[first:]:
        segments, reasons = _read_episode(reader, episode, recorded, wanted)
        # The frames of the recording have a prefix; the data are those of the task itself.
        own = [replace(item, task_signature=task.signature()) for item in segments]
        yield episode, own, [f"episode {episode.index}: {reason}" for reason in reasons]


def _read_episode(
    reader: BagReader, episode: RecordedEpisode, task: Task, wanted: str
) -> tuple[list[Dataset], list[str]]:
    """Return the segments of an episode and the reasons for everything that is left out of them."""
    if why := unwanted(episode, wanted):
        return [], [f"left out: {why}"]
    references = References(task)
    try:
        rows, reasons = _observe(reader, episode, task, references)
    except ObservationError as error:
        return [], [f"left out: {error}"]
    stamps = np.array([row.stamp_ns for row in rows], dtype=np.int64)
    actions, known = references.at(stamps)
    if not known.all():
        reasons.append(f"{int((~known).sum())} rows left out: no reference of the arm near their stamp")
    rows = [row for row, good in zip(rows, known, strict=True) if good]
    stamps, actions = stamps[known], actions[known]
    person = references.by_person(stamps)
    return segments_of(episode, rows, stamps, actions, person, task, reasons), reasons


def segments_of(
    episode: RecordedEpisode,
    rows: Sequence[Observation],
    stamps: NDArray[np.int64],
    actions: NDArray[np.float64],
    person: NDArray[np.bool_],
    task: Task,
    reasons: list[str],
) -> list[Dataset]:
    """Return the rows ``(T,)`` of an episode, split at gaps, without still ones at its start.

    Args:
        episode: it is of.
        rows: what was observed at each, without an axis of time.
        stamps: ``(T,)`` ns.
        actions: ``(T, D)``.
        person: ``(T,)``: whether a person moved the arm.
        task: layout of the data.
        reasons: takes a sentence for everything that is left out.
    """
    first = first_row(actions, task)
    if first is None:
        reasons.append(f"left out: the arm is never told to move in {len(rows)} rows")
        return []
    rows, stamps, actions, person = rows[first:], stamps[first:], actions[first:], person[first:]
    return _split(episode, rows, stamps, actions, person, task, reasons)


def _observe(
    reader: BagReader, episode: RecordedEpisode, task: Task, references: References
) -> tuple[list[Observation], list[str]]:
    """Play an episode into an observation buffer and return the newest row at each frame pair."""
    assert episode.end_ns is not None and episode.end_received_ns is not None
    by_topic = _features_by_topic(task, older=reader.is_older)
    # A row is the newest of a window. A window of one step keeps the first row after a gap.
    buffer = ObservationBuffer(replace(task, observation_steps=1))
    rows: list[Observation] = []
    missing: list[str] = []
    seen, times = episode.start_ns - 1, SampleTimes(reader)
    for item in reader.messages(by_topic, episode.start_received_ns, episode.end_received_ns + LAG_NS):
        references.take(item.topic, item.message)
        for feature in by_topic[item.topic]:
            if carries(feature, item.message):
                buffer.add(feature.name, times.sample_ns(item), extract(feature, item.message))
        newest = buffer.stamp_ns()
        if newest is None or not seen < newest <= episode.end_ns:
            continue
        seen = newest
        # Cameras may be faster than the task: a frame is taken if most of a period has passed.
        if rows and newest - rows[-1].stamp_ns < 0.75 * task.dt_ns:
            continue
        try:
            observation = buffer.assemble(newest)
            # Without the axis of time: the last row of the window.
            rows.append(replace(observation, values={name: value[-1] for name, value in observation.values.items()}))
        except ObservationError as error:
            missing.append(str(error))
    reasons = [f"{len(missing)} rows left out: {missing[0]}"] if missing else []
    return rows, reasons


def _features_by_topic(task: Task, older: bool = False) -> dict[str, list[Feature]]:
    """Return the observed features by the topic that delivers them; those of the set-points are always among these."""
    recorded_topics(task)  # refuses topics that cannot be told apart
    by_topic: dict[str, list[Feature]] = {topic: [] for topic in References(task).topics}
    for feature in task.observation:
        by_topic.setdefault(feature_topic(feature, older), []).append(feature)
    return by_topic


def _split(
    episode: RecordedEpisode,
    rows: Sequence[Observation],
    stamps: NDArray[np.int64],
    actions: NDArray[np.float64],
    person: NDArray[np.bool_],
    task: Task,
    reasons: list[str],
) -> list[Dataset]:
    """Split rows at gaps of more than one and a half periods, and add a reason for each to ``reasons``."""
    cuts = [0, *(np.flatnonzero(np.diff(stamps) > 1.5 * task.dt_ns) + 1).tolist(), len(rows)]
    segments = []
    for begin, end in pairwise(cuts):
        if end < len(rows):
            reasons.append(f"split after row {end - 1}: {(stamps[end] - stamps[end - 1]) / 1e6:.0f} ms to the next")
        if end - begin < task.observation_steps:
            reasons.append(f"{end - begin} rows left out: fewer than observation_steps {task.observation_steps}")
        else:
            values = [row.values for row in rows[begin:end]]
            segment = Dataset(
                observations={item.name: np.stack([value[item.name] for value in values]) for item in task.observation},
                actions=actions[begin:end],
                stamps_ns=stamps[begin:end],
                episode_ends=np.array([end - begin], dtype=np.int64),
                labels=(episode.label,),
                seeds=np.array([episode.seed], dtype=np.uint64),
                task=task.name,
                task_signature=task.signature(),
                truncated=np.array([end < len(rows)]),
                intervention=person[begin:end],
            )
            segments.append(segment)
    return segments

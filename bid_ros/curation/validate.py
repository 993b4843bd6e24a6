"""Validates bags: every check on every episode. What cannot be read is a fault too."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.core.topics import camera_topic, feature_topic
from bid_ros.curation.catalog import BagEpisode, episodes_of
from bid_ros.curation.check_messages import (
    check_clock,
    check_drops,
    check_gaps,
    check_pairs,
    check_recorder_clock,
    check_topics,
)
from bid_ros.curation.check_motion import (
    check_ending,
    check_frozen_arm,
    check_frozen_images,
    check_grasp,
    check_repeated,
    check_still,
)
from bid_ros.curation.check_pieces import check_pieces
from bid_ros.curation.commanded import check_commanded, check_measured
from bid_ros.curation.track import EpisodeTrack, Fault, error, read_track, warning
from bid_ros.recording.events import FILE, check_events
from bid_ros.recording.files import invented_fields, sentence
from bid_ros.recording.reader import BagReader

Check = Callable[[EpisodeTrack, Task | None], Iterator[Fault]]

CHECKS: Final[tuple[Check, ...]] = (
    check_ending,
    check_gaps,
    check_pieces,
    check_drops,
    check_pairs,
    check_clock,
    check_repeated,
    check_frozen_images,
    check_frozen_arm,
    check_commanded,
    check_measured,
    check_still,
    check_grasp,
)
"""The checks of one episode. Each is one function of its numbers and its task, which may be None."""


@dataclass(frozen=True)
class Validation:
    """The faults of a bag, or of one of its episodes.

    Attributes:
        bag: path of the bag.
        recorded: the episode; None: the faults are of the whole bag.
        faults: in the order of the checks.
    """

    bag: Path
    recorded: BagEpisode | None
    faults: tuple[Fault, ...]

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(fault.severity == "error" for fault in self.faults)

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        number = None if self.recorded is None else self.recorded.number
        return {"bag": str(self.bag), "number": number, "faults": [vars(fault) for fault in self.faults]}


def validate_bag(
    bag: Path, task: Task | None, remapped: Mapping[str, str] | None = None, number: int | None = None
) -> Iterator[Validation]:
    """Yield the faults of a bag, then those of each of its episodes.

    Args:
        bag: path of the bag.
        task: its task; None: what needs one is not checked.
        remapped: recorded names, as :class:`BagReader` takes them.
        number: only this episode; None: all.
    """
    try:
        with BagReader(bag, remapped) as reader:
            recorded_task = None if task is None else task.with_frame_prefix(reader.frame_prefix)
            yield Validation(bag, None, tuple(faults_of_bag(reader, recorded_task)))
            for recorded in episodes_of(reader):
                if number in (None, recorded.number):
                    track = read_track(reader, recorded, observed_topics(recorded_task))
                    yield Validation(bag, recorded, check_track(track, recorded_task))
    except BidError as problem:
        yield Validation(bag, None, (error("readable", str(problem)),))


def runs_of(path: Path) -> list[Path]:
    """Return the folders of runs with events that a path names: itself, that of its bag, or those below it."""
    near = [folder for folder in (path, path.parent) if (folder / FILE).exists()]
    return near[:1] or sorted(file.parent for file in path.rglob(FILE))


def validate_events(paths: Iterable[Path]) -> Iterator[Validation]:
    """Yield what is wrong with the events of the runs that paths name: the first broken line of each."""
    for run in dict.fromkeys(run for path in paths for run in runs_of(path)):
        problem = check_events(run)
        yield Validation(run, None, (error("events", problem),) if problem else ())


def check_track(track: EpisodeTrack, task: Task | None) -> tuple[Fault, ...]:
    """Return what every check finds in one episode."""
    return tuple(chain.from_iterable(check(track, task) for check in CHECKS))


def observed_topics(task: Task | None) -> dict[str, str]:
    """Return the topics of the task's observations that are known, with the names of the features."""
    topics = {}
    for feature in () if task is None else task.observation:
        try:
            topics[feature_topic(feature)] = feature.name
        except BidError:
            continue  # a check of the topics says so
    return topics | {camera_topic(camera.name): camera.name for camera in (() if task is None else task.cameras)}


def faults_of_bag(reader: BagReader, task: Task | None) -> Iterator[Fault]:
    """Yield the faults of a whole bag: its file, its clock, its topics."""
    if not reader.was_complete:
        text = "the recording was not closed; read up to its last whole message"
        yield warning("readable", f"{text}: bid episodes repair restores its index")
    if not sum(reader.counts.values()):
        yield error("readable", "the bag holds no message; valid is one or more")
        return
    if fields := invented_fields(reader.custom):
        yield warning("invented", f"{sentence(fields)}; valid is what a recorder heard")
    yield from check_recorder_clock(reader.path)
    yield from check_topics(reader, task)

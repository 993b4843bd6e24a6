"""How many episodes bags hold, by what says where they begin and end: no row is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bid_ros.core.task import Task
from bid_ros.core.topics import EPISODE_EVENT
from bid_ros.recording.episodes import RecordedEpisode, find_episodes, unwanted
from bid_ros.recording.foreign.episodes import check_said, read_foreign_episodes
from bid_ros.recording.foreign.links import is_foreign, links_of, mapping_of
from bid_ros.recording.outcomes import SUCCESS
from bid_ros.recording.reader import BagReader


@dataclass(frozen=True)
class RecordedCount:
    """How many episodes bags hold. Their rows may give fewer, or more: a gap in the rows cuts an episode in two.

    Attributes:
        episodes: number of all, those without an end included. None: nothing says it.
        successes: number of those that succeeded. None: nothing says how they ended.
        unknown: a sentence on why nothing says ``episodes``, else empty.
        cut: bags whose recorder did not close them: what is behind their last whole message is lost.
    """

    episodes: int | None
    successes: int | None
    unknown: str = ""
    cut: tuple[str, ...] = ()


def count_recorded(bags: Iterable[Path], task: Task) -> RecordedCount:
    """Count the episodes of bags, those of another recorder by what the task file says of it.

    Raises:
        RecordingError: a bag is damaged, or does not hold what the task file says.
    """
    found: list[RecordedEpisode] = []
    told, cut = True, []
    for bag in bags:
        with BagReader(bag, task.recorded_names) as reader:
            cut += [] if reader.was_complete else [str(bag)]
            if is_foreign(reader, task):
                episodes, ended = _foreign(reader, task)
                told = told and ended
            elif reader.recorded_name(EPISODE_EVENT) in reader.topics or not sum(reader.counts.values()):
                episodes = find_episodes(reader)
            else:
                return RecordedCount(None, None, _unknown(bag))
        found += episodes
    successes = sum(not unwanted(episode, SUCCESS) for episode in found)
    return RecordedCount(len(found), successes if told else None, cut=tuple(cut))


def _foreign(reader: BagReader, task: Task) -> tuple[tuple[RecordedEpisode, ...], bool]:
    """Return the episodes of a bag of another recorder, and whether anything says how they ended."""
    mapping, links = mapping_of(task), links_of(reader, task)
    assert mapping is not None, "a task file with places"
    return read_foreign_episodes(reader, mapping, links), check_said(reader, mapping, links)[1]


def _unknown(bag: Path) -> str:
    return f"bag {bag} has no topic {EPISODE_EVENT}, and data: topics: of the task file maps no other recorder's topics"

"""What bags of anybody's robot hold for a task, before a row of them is read."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.recording.foreign.episodes import check_said
from bid_ros.recording.foreign.links import is_foreign, links_of, mapping_of
from bid_ros.recording.foreign.transforms import STATIC
from bid_ros.recording.reader import BagReader


@dataclass(frozen=True)
class ForeignContents:
    """What bags of others hold.

    Attributes:
        notes: one sentence for each thing that is read otherwise than it may seem.
        left: one sentence for what is not read.
        success: something says how each episode ended.
    """

    notes: tuple[str, ...]
    left: tuple[str, ...]
    success: bool


def foreign_contents(bags: Iterable[Path], task: Task) -> ForeignContents | None:
    """Return what bags of others hold for a task; None: there are none, or the task file names no places.

    Raises:
        RecordingError: a bag does not hold what the task file says, or a file beside it is of other episodes. A bag
            that cannot be opened is left out here; reading it says why.
    """
    mapping = mapping_of(task)
    if mapping is None:
        return None
    notes: dict[str, None] = {}
    left: set[str] = set()
    told: list[bool] = []
    for reader in _readable(bags, task):
        with reader:
            if not is_foreign(reader, task) or not sum(reader.counts.values()):
                continue
            links = links_of(reader, task)
            notes |= dict.fromkeys(links.notes)
            every = (*links.observation, *links.action)
            named = {link.place.topic for link in every if link.place}
            named |= {link.place.topic + STATIC for link in every if link.place and link.frames}
            said, ended = check_said(reader, mapping, links)
            left |= set(reader.topics) - {reader.recorded_name(topic) for topic in named | said}
            told.append(ended)
    unread = (f"the task file names no {', '.join(sorted(left))}",) if left else ()
    return ForeignContents(tuple(notes), unread, all(told)) if told else None


def _readable(bags: Iterable[Path], task: Task) -> Iterator[BagReader]:
    for bag in bags:
        with suppress(RecordingError):
            yield BagReader(bag, task.recorded_names)

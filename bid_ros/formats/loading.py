"""A data set of any format as the one that training takes, and the choice of its episodes by how they ended."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.formats.bag import BagReport, BagSource
from bid_ros.formats.base import DataEpisode, Source, format_of, open_source
from bid_ros.formats.convert import check_episode
from bid_ros.formats.mapping import mapped
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.outcomes import ALL, SUCCESS, check_outcomes


def chosen(source: Source, wanted: str) -> Source:
    """Return the episodes of a data set that ended as wanted.

    Args:
        source: opened, and not mapped to a task yet.
        wanted: ``success``, ``failure`` or ``all``. An episode of which a data set does not say how it ended counts
            as a success, because such data sets are of demonstrations.

    Raises:
        RecordingError: there is no such word.
    """
    if isinstance(source, BagSource):
        return source.of(wanted)
    return source if check_outcomes(wanted) == ALL else _Chosen(source, wanted)


class _Chosen:
    """The episodes of one outcome."""

    def __init__(self, source: Source, wanted: str) -> None:
        self._source, self._success = source, wanted == SUCCESS
        left = f"episodes that {'failed' if self._success else 'succeeded'} are left out"
        self.contents = replace(source.contents, lengths=None, left=(*source.contents.left, left))

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes of this outcome, from number ``start`` of them on. Raises RecordingError without one."""
        number = 0
        for episode in self._source.episodes(0, names):
            if (episode.success is not False) == self._success:
                if number >= start:
                    yield episode
                number += 1
        if number == 0:
            word = "succeeded" if self._success else "failed"
            raise RecordingError(f"the data set has no episode that {word}; valid is another --outcome")


def load_dataset(path: str | Path, task: Task) -> Dataset:
    """Read a data set of any format for ``task``.

    Args:
        path: file or folder.
        task: its section ``data`` says where the features are.

    Raises:
        RecordingError: no format knows the path, it is damaged, or it does not hold what the task needs.
    """
    path = Path(path)
    if not path.exists() or format_of(path) == "npz":
        return Dataset.load(path)
    return collected(mapped(open_source(path, task), task))


def build_dataset(
    bags: Iterable[str | Path],
    task: Task,
    only_success: bool = True,
    progress: Callable[[BagReport], None] | None = None,
) -> Dataset:
    """Return the rows of all episodes in ``bags``, as :func:`bid_ros.recording.rows.read_episodes` makes them.

    Args:
        bags: bag folders.
        task: what is observed and commanded.
        only_success: leave out failed episodes.
        progress: called with the report of each bag; default: log it.

    Raises:
        RecordingError: no bag has a usable episode, or the task's actions are not recorded.
        TaskError: no topic delivers one of the task's observations.
    """
    wanted = SUCCESS if only_success else ALL
    return collected(BagSource([Path(bag) for bag in bags], task, wanted, progress or _log))


def _log(report: BagReport) -> None:
    log = logging.getLogger(__name__)
    log.info("%s: %d of %d episodes, %d rows", report.path, report.used, report.episodes, report.rows)
    for reason in report.reasons:
        log.warning("%s: %s", report.path, reason)


def collected(source: Source) -> Dataset:
    """Return all episodes of a mapped source as one data set; beyond it, one episode is in memory."""
    contents = source.contents
    for sentence in contents.notes:
        logging.getLogger(__name__).warning("%s", sentence)
    store = _Store(contents.rows)
    episodes: list[DataEpisode] = []
    rows = 0
    for episode in source.episodes():
        check_episode(contents, episode, len(episodes))
        arrays = {column.name: episode.observations[column.name] for column in contents.columns}
        store.add(rows, episode.rows, {**arrays, "": episode.actions})
        rows += episode.rows
        episodes.append(DataEpisode({}, episode.actions[:0], episode.stamps_ns, **episode.about()))
    whole = store.taken(rows)
    return Dataset(
        actions=whole.pop("", np.zeros((0, contents.action.size))),
        observations=whole,
        stamps_ns=np.concatenate([np.zeros(0, np.int64), *(item.stamps_ns for item in episodes)]),
        episode_ends=np.cumsum([len(item.stamps_ns) for item in episodes], dtype=np.int64),
        labels=tuple(item.label for item in episodes),
        seeds=np.array([item.seed for item in episodes], dtype=np.uint64),
        task=contents.task,
        task_signature=contents.signature,
        truncated=np.array([item.truncated for item in episodes], dtype=np.bool_),
        intervention=np.concatenate([np.zeros(0, np.bool_), *(item.by_person for item in episodes)]),
    )


class _Store:
    """Arrays that grow by episodes. With a known number of rows each is allocated once."""

    def __init__(self, rows: int | None) -> None:
        self._rows = rows
        self._arrays: dict[str, Any] = {}

    def add(self, at: int, rows: int, arrays: dict[str, Any]) -> None:
        for name, values in arrays.items():
            whole = self._arrays.get(name)
            needed = at + rows
            if whole is None:
                whole = np.empty((max(needed, self._rows or 0), *values.shape[1:]), values.dtype)
            elif needed > len(whole):
                grown = np.empty((max(needed, 2 * len(whole)), *whole.shape[1:]), whole.dtype)
                grown[:at] = whole[:at]
                whole = grown
            whole[at:needed] = values
            self._arrays[name] = whole

    def taken(self, rows: int) -> dict[str, Any]:
        return {name: values[:rows] for name, values in self._arrays.items()}

"""Recorded bags as a data set: the rows that live observation makes of their messages."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.formats.bag_writer import BagsWriter, losses
from bid_ros.formats.base import Column, Contents, DataEpisode, Format, Source, runs_of
from bid_ros.formats.files import DescribedSource
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.files import bag_files, invented_in
from bid_ros.recording.outcomes import SUCCESS, check_outcomes


class BagSource(DescribedSource):
    """Reads the episodes of bags, one bag at a time.

    Args:
        bags: bag folders.
        task: what is observed and commanded.
        wanted: one of :data:`bid_ros.recording.outcomes.OUTCOMES`.

    Attributes:
        reasons: why something was left out, of what was read so far.

    Raises:
        RecordingError: there are no episodes of such an outcome.
    """

    def __init__(self, bags: Sequence[Path], task: Task, wanted: str = SUCCESS) -> None:
        self._bags, self._task, self._wanted = tuple(bags), task, check_outcomes(wanted)
        self._recalled: tuple[int, int, int, int] | None = None  # start, then bag, episode and segment before it
        self.reasons: list[str] = []
        self._contents = Contents(
            "bag",
            tuple(
                Column(item.name, item.shape, "uint8" if item.kind == "image" else "float64", item.kind == "image")
                for item in task.observation
            ),
            Column("action", (task.action_dim,), "float64"),
            None,
            task.rate_hz,
            task.name,
            task.signature(),
            frozenset({"stamps", "label", "seed", "truncated", "success", "interventions"}),
            ("the bags also hold decisions, candidates, heartbeats and transforms, which no data set holds",),
        )

    @property
    def invented(self) -> tuple[str, ...]:
        """Fields of the bags that nobody recorded, ``TOPIC.FIELD`` each."""
        return invented_in(self._bags)

    @property
    def files(self) -> tuple[str, ...]:
        """The bags as they are now, and which of their episodes are wanted."""
        return (*(_state(bag) for bag in self._bags), self._wanted)

    def of(self, wanted: str) -> "BagSource":
        """Return the episodes of another outcome, one of :data:`bid_ros.recording.outcomes.OUTCOMES`."""
        return BagSource(self._bags, self._task, wanted)

    def recall(self, origin: str, start: int) -> None:
        """Take where the episode before number ``start`` was: bags and episodes before it are not read again."""
        try:
            bag, episode, segment = map(int, origin.split("/"))
        except ValueError as error:
            raise RecordingError(f"'{origin}' is no place in bags; valid is BAG/EPISODE/SEGMENT in numbers") from error
        self._recalled = start, bag, episode, segment

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on. Raises RecordingError if no bag has one that can be used."""
        from bid_ros.recording.build_dataset import check_observed  # takes a second to import

        check_observed(self._task)  # a bag that cannot be read is left out, a task that no bag serves is an error
        self.reasons.clear()
        begin, number = (0, 0, -1), 0
        if self._recalled is not None and self._recalled[0] == start:
            number, *place = self._recalled
            begin = place[0], place[1], place[2]
        for at in range(begin[0], len(self._bags)):
            first, after = (begin[1], begin[2]) if at == begin[0] else (0, -1)
            for episode in self._of_bag(at, first, after):
                if number >= start:
                    yield episode
                number += 1
        if number == 0:
            what = "usable episode" if self._wanted == SUCCESS else f"usable episode of outcome {self._wanted}"
            raise RecordingError(f"none of {len(self._bags)} bags has a {what} ({'; '.join(self.reasons[:3])})")

    def _of_bag(self, at: int, first: int, after: int) -> Iterator[DataEpisode]:
        """Yield the episodes of a bag, behind segment ``after`` of its episode ``first``; one is in memory."""
        from bid_ros.recording.build_dataset import read_episodes
        from bid_ros.recording.reader import BagReader

        bag = self._bags[at]
        try:
            with BagReader(bag, self._task.recorded_names) as reader:
                found = read_episodes(reader, self._task, self._wanted, first)
                for number, (recorded, segments, why) in enumerate(found, first):
                    self.reasons += [f"{bag}: {reason}" for reason in why]
                    for part, segment in enumerate(segments):
                        if (number, part) > (first, after):
                            (episode,) = dataset_episodes(segment, recorded.success)
                            yield replace(episode, origin=f"{at}/{number}/{part}")
        except RecordingError as error:
            self.reasons.append(str(error))


def _state(bag: Path) -> str:
    """Return a bag's path, and of its files what changes with them, as when an episode is taken back or cut out."""
    about = [str(bag.resolve())]
    with suppress(RecordingError):  # one without files is left out with a reason when it is read
        about += [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in bag_files(bag)]
    return ", ".join(about)


def dataset_episodes(dataset: Dataset, success: bool = True) -> Iterator[DataEpisode]:
    """Return the episodes of a data set in memory, all of the same outcome."""
    for number, (first, end) in enumerate(zip(dataset.episode_starts, dataset.episode_ends, strict=True)):
        yield DataEpisode(
            observations={name: np.asarray(values[first:end]) for name, values in dataset.observations.items()},
            actions=dataset.actions[first:end],
            stamps_ns=dataset.stamps_ns[first:end],
            label=dataset.labels[number],
            seed=int(dataset.seeds[number]),
            truncated=bool(dataset.truncated[number]),
            success=success,
            interventions=runs_of(dataset.intervention[first:end]),
        )


def bags_below(path: Path) -> list[Path]:
    """Return the bag at a path, or the bags below it, in the order of their names; those in the trash are left out."""
    if (path / "metadata.yaml").exists() or list(path.glob("*.mcap")):
        return [path]
    found = {*path.glob("**/bag"), *(file.parent for file in path.glob("**/metadata.yaml"))}
    hidden = {bag for bag in found if any(part.startswith(".") for part in bag.relative_to(path).parts)}
    return sorted(found - hidden)


def _recognises(path: Path) -> bool:
    return path.is_dir() and bool(bags_below(path))


def _open(path: Path, task: Task | None) -> Source:
    bags = bags_below(path)
    if not bags:
        raise RecordingError(f"there is no bag in {path}; valid are bags, or folders that hold runs with one")
    if task is None:
        raise RecordingError(f"{path} holds bags, and no run.json beside them names their task; give it with --task")
    return BagSource(bags, task)


FORMAT: Final = Format(
    what="recorded bags",
    recognises=_recognises,
    open=_open,
    writer=lambda contents, options: BagsWriter(contents, options.task),
    losses=losses,
)

"""Recorded bags as a data set: the rows that live observation makes of their messages."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.formats.bag_writer import BagsWriter, losses
from bid_ros.formats.base import Column, Contents, Episode, Format, Options, Source, runs_of
from bid_ros.recording.dataset import Dataset


class BagSource:
    """Reads the successful episodes of bags, one bag at a time.

    Args:
        bags: bag folders.
        task: what is observed and commanded.

    Raises:
        RecordingError: there is no bag.
    """

    def __init__(self, bags: Sequence[Path], task: Task) -> None:
        self._bags, self._task = tuple(bags), task
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
    def contents(self) -> Contents:
        """What the bags hold of the task."""
        return self._contents

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[Episode]:
        """Return the episodes from number ``start`` on. Raises RecordingError if no bag has one that can be used."""
        from bid_ros.recording.build_dataset import check_observed  # takes a second to import

        check_observed(self._task)  # a bag that cannot be read is left out, a task that no bag serves is an error
        number, reasons = 0, list[str]()
        for bag in self._bags:
            for episode in self._of_bag(bag, reasons):
                if number >= start:
                    yield episode
                number += 1
        if number == 0:
            raise RecordingError(f"none of {len(self._bags)} bags has a usable episode ({'; '.join(reasons[:3])})")

    def _of_bag(self, bag: Path, reasons: list[str]) -> Iterator[Episode]:
        """Yield the episodes of a bag; the rows of one are in memory."""
        from bid_ros.recording.build_dataset import read_episodes
        from bid_ros.recording.reader import BagReader

        try:
            with BagReader(bag, self._task.recorded_names) as reader:
                for _, segments, why in read_episodes(reader, self._task):
                    reasons += [f"{bag}: {reason}" for reason in why]
                    for segment in segments:
                        yield from dataset_episodes(segment)
        except RecordingError as error:
            reasons.append(str(error))


def dataset_episodes(dataset: Dataset) -> Iterator[Episode]:
    """Return the episodes of a data set in memory; all of them succeeded."""
    for number, (first, end) in enumerate(zip(dataset.episode_starts, dataset.episode_ends, strict=True)):
        yield Episode(
            observations={name: np.asarray(values[first:end]) for name, values in dataset.observations.items()},
            actions=dataset.actions[first:end],
            stamps_ns=dataset.stamps_ns[first:end],
            label=dataset.labels[number],
            seed=int(dataset.seeds[number]),
            truncated=bool(dataset.truncated[number]),
            success=True,
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


def _writer(contents: Contents, options: Options) -> BagsWriter:
    return BagsWriter(contents, options.task)


FORMAT: Final = Format(what="recorded bags", recognises=_recognises, open=_open, writer=_writer, losses=losses)

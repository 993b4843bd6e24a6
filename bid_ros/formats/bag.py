"""Recorded bags as a data set: the rows that live observation makes of their messages."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.formats.bag_writer import BagsWriter, losses
from bid_ros.formats.base import Column, Contents, DataEpisode, Format, Source
from bid_ros.formats.pieces import Piece
from bid_ros.formats.rows import runs_of
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.files import bag_files, bags_inside, invented_in, is_bag_file, is_bag_folder
from bid_ros.recording.instructions import find_instructions, instructed_in, texts_of
from bid_ros.recording.outcomes import SUCCESS, check_outcomes
from bid_ros.recording.recorded_task import other_tasks

if TYPE_CHECKING:
    from bid_ros.recording.foreign.latency import Latency
    from bid_ros.recording.recorded_count import RecordedCount

EXTRAS_OF_BAGS: Final = frozenset({"stamps", "label", "seed", "truncated", "success", "interventions"})
EXTRAS_OF_OTHERS: Final = frozenset({"stamps", "truncated"})
ROWS_VERSION: Final = 7  # of what the code makes of a bag: rows that are kept of another one are not used


@dataclass(frozen=True)
class BagReport:
    """Report on one bag: episodes found and used, rows, and a reason for everything that was left out."""

    path: str
    episodes: int
    used: int
    rows: int
    reasons: tuple[str, ...]


class BagSource:
    """Reads the episodes of bags, one bag at a time.

    Args:
        bags: bag folders.
        task: what is observed and commanded.
        wanted: one of :data:`bid_ros.recording.outcomes.OUTCOMES`.
        told: called with the report of each bag that was read.

    Raises:
        RecordingError: there are no episodes of such an outcome.
    """

    def __init__(
        self,
        bags: Sequence[Path],
        task: Task,
        wanted: str = SUCCESS,
        told: Callable[[BagReport], None] = lambda report: None,
    ) -> None:
        self._bags, self._task, self._wanted, self._told = tuple(bags), task, check_outcomes(wanted), told
        self._reasons: dict[str, tuple[str, ...]] = {}

    @cached_property
    def contents(self) -> Contents:
        """What the bags hold.

        Raises:
            RecordingError: bags of another recorder do not hold what the task file says of them.
        """
        from bid_ros.recording.foreign.contents import foreign_contents

        task, foreign = self._task, foreign_contents(self._bags, self._task)
        extras = EXTRAS_OF_OTHERS | ({"success"} if foreign and foreign.success else set())
        extras = extras if foreign else EXTRAS_OF_BAGS
        own = ("the bags also hold decisions, candidates, heartbeats and transforms, which no data set holds",)
        return Contents(
            "bag",
            tuple(Column(item.name, item.shape, item.dtype, item.kind == "image") for item in task.observation),
            Column("action", (task.action_dim,), "float64"),
            None,
            task.rate_hz,
            task.name,
            task.signature(),
            extras | ({"text"} if instructed_in(self._bags) else set()),
            foreign.left if foreign else own,
            (*(foreign.notes if foreign else ()), *other_tasks(self._bags, self._task)),
        )

    def latencies(self) -> "tuple[Latency, ...]":
        """Return each latency between command and state in bags of another recorder; they are read.

        Raises:
            RecordingError: a bag is damaged, or does not hold what the task file says.
        """
        from bid_ros.recording.foreign.latency import latencies

        return latencies(self._bags, self._task)

    def recorded(self) -> "RecordedCount":
        """Return how many episodes the bags hold, before a row is read.

        Raises:
            RecordingError: a bag is damaged, or does not hold what the task file says.
        """
        from bid_ros.recording.recorded_count import count_recorded

        return count_recorded(self._bags, self._task)

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for everything that was left out of the bags that were read, with the bag."""
        return tuple(f"{bag}: {reason}" for bag, reasons in self._reasons.items() for reason in reasons)

    @property
    def invented(self) -> tuple[str, ...]:
        """Fields of the bags that nobody recorded, ``TOPIC.FIELD`` each."""
        return invented_in(self._bags)

    @property
    def files(self) -> tuple[str, ...]:
        """The bags as they are now, and which of their episodes are wanted."""
        return tuple(line for bag in self._bags for line in self._lines(bag))

    def _lines(self, bag: Path) -> tuple[str, ...]:
        """Return what the rows of a bag depend on, the task file's places included."""
        from bid_ros.recording.foreign.links import mapping_of
        from bid_ros.recording.foreign.tables import files_state

        mapping, data = mapping_of(self._task), self._task.data
        places = () if mapping is None or data is None else (f"{mapping}, {data.unit}", *files_state(bag, mapping))
        return (_state(bag), self._wanted, *places)

    def of(self, wanted: str) -> "BagSource":
        """Return the episodes of another outcome, one of :data:`bid_ros.recording.outcomes.OUTCOMES`."""
        return BagSource(self._bags, self._task, wanted, self._told)

    def pieces(self) -> Iterator[Piece]:
        """Yield the bags one by one; each is read before the next is asked for.

        Raises:
            RecordingError: no bag has an episode that can be used.
        """
        from bid_ros.recording.foreign.links import mapping_of
        from bid_ros.recording.rows import check_observed  # takes a second to import

        if mapping_of(self._task) is None:
            check_observed(self._task)  # a bag that cannot be read is left out, a task that no bag serves is an error
        reports: list[BagReport] = []
        for bag in self._bags:
            piece = Piece(
                self._lines(bag),
                partial(self._of_bag, bag),
                {"episodes": 0, "used": 0, "rows": 0, "segments": 0, "reasons": []},
            )
            yield piece
            found = piece.report
            reports.append(
                BagReport(str(bag), found["episodes"], found["used"], found["rows"], tuple(found["reasons"]))
            )
            self._reasons[str(bag)] = reports[-1].reasons
            self._told(reports[-1])
        if not any(report.rows for report in reports):
            what = "" if self._wanted == SUCCESS else f" and outcome {self._wanted}"
            reasons = [f"{each.path}: {reason}" for each in reports for reason in each.reasons or ("no episode",)]
            raise RecordingError(
                f"none of {len(reports)} bags has a usable episode for task '{self._task.name}'{what} "
                f"({'; '.join(reasons[:3])})"
            )

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on. Raises RecordingError if no bag has one that can be used."""
        return islice((episode for piece in self.pieces() for episode in piece.read(piece, 0)), start, None)

    def _of_bag(self, bag: Path, piece: Piece, start: int) -> Iterator[DataEpisode]:
        """Yield the episodes of a bag behind those of its report; one is in memory."""
        from bid_ros.recording.foreign.links import is_foreign
        from bid_ros.recording.foreign.rows import read_foreign
        from bid_ros.recording.reader import BagReader
        from bid_ros.recording.rows import read_episodes

        found, told = piece.report, "success" in self.contents.extras
        first = max(found["episodes"] - 1, 0)
        try:
            with BagReader(bag, self._task.recorded_names) as reader:
                if not sum(reader.counts.values()):
                    found["reasons"].append("it holds no message")
                if not reader.was_complete and not start:
                    found["reasons"].append("the recording was not closed; read up to its last whole message")
                instructions = find_instructions(reader)
                read = read_foreign if is_foreign(reader, self._task) else read_episodes
                every = read(reader, self._task, self._wanted, first)
                for number, (recorded, segments, why) in enumerate(every, first + 1):
                    if number > found["episodes"]:
                        found |= {"episodes": number, "used": found["used"] + bool(segments), "segments": 0}
                        found["reasons"] += why
                    for segment in segments[found["segments"] :]:  # a gap splits an episode into segments
                        found["segments"] += 1
                        found["rows"] += segment.rows
                        for episode in dataset_episodes(segment, recorded.success if told else None):
                            yield replace(episode, **texts_of(instructions, recorded, episode.stamps_ns))
        except RecordingError as error:
            piece.whole = False
            found["reasons"].append(str(error))


def _state(bag: Path) -> str:
    """Return a bag's path, and of its files what changes with them, as when an episode is taken back or cut out."""
    about = [f"{bag.resolve()}, rows of version {ROWS_VERSION}"]
    with suppress(RecordingError):  # one without files is left out with a reason when it is read
        about += [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in bag_files(bag)]
    return ", ".join(about)


def dataset_episodes(dataset: Dataset, success: bool | None = True) -> Iterator[DataEpisode]:
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
    if not path.is_dir():
        return [path] if is_bag_file(path) else []
    empty = {bag for bag in path.glob("**/bag") if bag.is_dir() and not is_bag_folder(bag)}  # each is said to be so
    hidden = {bag for bag in empty if any(part.startswith(".") for part in bag.relative_to(path).parts)}
    return sorted({*bags_inside(path), *(empty - hidden)})


def _recognises(path: Path) -> bool:
    return bool(bags_below(path))


def _open(path: Path, task: Task | None) -> Source:
    bags = bags_below(path)
    if not bags:
        raise RecordingError(f"there is no bag in {path}; valid are bags, or folders that hold some")
    if task is None:
        raise RecordingError(f"{path} holds bags, and no run.json beside them names their task; give it with --task")
    return BagSource(bags, task)


FORMAT: Final = Format(
    recognises=_recognises,
    open=_open,
    writer=lambda contents, options: BagsWriter(contents, options.task),
    losses=losses,
)

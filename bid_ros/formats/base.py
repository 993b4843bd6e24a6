"""What a format of data sets is made of (contents, episodes, a reader, a writer), and the formats by name."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.hub import fetch_hint
from bid_ros.core.registry import Registry, collect
from bid_ros.core.task import Task

# What an episode may carry besides its rows. A format that lacks one loses it.
EXTRAS: Final = {
    "stamps": "the time of each row",
    "label": "the label of each episode",
    "seed": "the seed of each episode",
    "truncated": "where a gap cuts a demonstration in two",
    "success": "the success of each episode",
    "text": "the text of the task of each episode",
    "interventions": "the rows at which a person moved the arm",
}


@dataclass(frozen=True)
class Column:
    """One quantity of a data set.

    Attributes:
        name: name of the task's feature, or the key without what its format puts before it.
        shape: shape of one row.
        dtype: numpy's name of the type, such as ``float32``.
        image: the rows are pictures, ``(height, width, 3)``, rgb, or distances ``(height, width, 1)``, uint16 mm.
        names: names of the values of a row in C order; empty: unknown.
        key: key in the files; empty: the name.
        codec: lossy coding of the rows, such as ``h264``; empty: they are exact.
        by_key_alone: its key is not one of observations, so only a task that names it takes it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    image: bool = False
    names: tuple[str, ...] = ()
    key: str = ""
    codec: str = ""
    by_key_alone: bool = False

    def wanted(self, names: Collection[str] | None) -> bool:
        """Return whether the column is one of ``names``. None: all are."""
        return names is None or self.name in names

    @property
    def size(self) -> int:
        """Number of values of one row."""
        return int(np.prod(self.shape))


NO_ACTION: Final = Column("action", (0,), "float32")
NUMBERS: Final = "biuf"  # letters of numpy's types that are numbers
ACTIONS: Final = ("action", "actions")  # keys of what was commanded


def holds_images(shape: Sequence[int], dtype: str) -> bool:
    """Whether rows of a shape and a type are images, where a format does not say it."""
    return len(shape) == 3 and (shape[2] == 3 or (shape[2] == 1 and dtype == "uint16"))


@dataclass(frozen=True)
class Contents:
    """What a data set holds.

    Attributes:
        format: name of its format.
        columns: what was observed.
        action: what was commanded; of size 0: no column says so by its key, and a task may name one.
        lengths: rows of each episode. None: only reading tells.
        rate_hz: rows per second. None: the format does not say.
        task: name of the task, if the data set says whose data it holds.
        signature: ``Task.signature()``, likewise.
        extras: names in ``EXTRAS`` of what its episodes carry.
        left: one sentence for each thing in the files that is not read.
        notes: one sentence for each thing that is read otherwise than the files say it, and why.
    """

    format: str
    columns: tuple[Column, ...]
    action: Column
    lengths: tuple[int, ...] | None
    rate_hz: float | None
    task: str = ""
    signature: str = ""
    extras: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int | None:
        """Number of rows. None: only reading tells."""
        return None if self.lengths is None else sum(self.lengths)


@dataclass(frozen=True, eq=False)
class DataEpisode:
    """One episode.

    Attributes:
        observations: ``(T, *shape)`` by name of the column.
        actions: ``(T, *shape)``.
        stamps_ns: ``(T,)`` int64, ROS time of each row, or the time since the start of the episode.
        label: such as ``clean``.
        seed: seed of the scene.
        truncated: a gap follows the last row.
        success: None: unknown.
        text: the task in words.
        texts: (first row, text) of each run of rows with the same task, if the task changes; ``text`` is the first one.
        interventions: (first, end) of each run of rows at which a person moved the arm, not a policy.
    """

    observations: Mapping[str, NDArray[Any]]
    actions: NDArray[Any]
    stamps_ns: NDArray[np.int64]
    label: str = ""
    seed: int = 0
    truncated: bool = False
    success: bool | None = None
    text: str = ""
    texts: tuple[tuple[int, str], ...] = ()
    interventions: tuple[tuple[int, int], ...] = ()

    @property
    def rows(self) -> int:
        """T, number of rows."""
        return len(self.stamps_ns)

    @property
    def by_person(self) -> NDArray[np.bool_]:
        """``(T,)``: whether a person moved the arm at each row."""
        found = np.zeros(self.rows, dtype=np.bool_)
        for first, end in self.interventions:
            found[first:end] = True
        return found

    def about(self) -> dict[str, Any]:
        """Return what is known about the episode beside its rows, for JSON."""
        return {name: getattr(self, name) for name in ABOUT}


ABOUT: Final = ("label", "seed", "truncated", "success", "text", "texts", "interventions")


class Source(Protocol):
    """An opened data set. It reads one episode at a time."""

    @property
    def contents(self) -> Contents:
        """What the data set holds."""

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on.

        Args:
            start: number of the first one.
            names: of the columns that are wanted; a source need not read others. None: all.

        Raises:
            RecordingError: the files are damaged.
        """


class Writer(Protocol):
    """Writes a data set: first each episode on its own, in any number of runs, then the whole from these parts."""

    def write_part(self, episode: DataEpisode, folder: Path) -> None:
        """Write one episode into an empty folder."""

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the data set from the folders of all episodes to a path that does not exist."""


@dataclass(frozen=True)
class Options:
    """How a data set is written.

    Attributes:
        images: ``video`` (small, with loss) or ``png`` (exact), in formats that know both.
        quality: constant rate factor of H.264; 0 to 51, smaller is better.
        task: what the rows are; bags need it.
    """

    images: Literal["video", "png"] = "video"
    quality: int = 18
    task: Task | None = None

    def __post_init__(self) -> None:
        if self.images not in ("video", "png"):
            raise RecordingError(f"images are '{self.images}'; valid are video and png")
        if not 0 <= self.quality <= 51:
            raise RecordingError(f"quality is {self.quality}; valid is 0 to 51")


ReadBack = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class Format:
    """Descriptor of a format.

    Attributes:
        recognises: tells from names and small files alone whether a path holds a data set of this format.
        open: opens one. The task is what its rows shall become; most formats do without.
        writer: makes a writer. None: the format is only read.
        losses: one sentence for each thing in ``contents`` that the format, written with these options, cannot hold.
        fates: for each column that changes, by its name (the action is ``action``), how it does; others are exact.
        read_back: gives, of the columns of an episode that was read from what the format wrote, those of the source.
    """

    recognises: Callable[[Path], bool]
    open: Callable[[Path, Task | None], Source]
    writer: Callable[[Contents, Options], Writer] | None = None
    losses: Callable[[Contents, Options], list[str]] = field(default=lambda contents, options: [])
    fates: Callable[[Contents, Options], Mapping[str, str]] = field(default=lambda contents, options: {})
    read_back: Callable[[Contents, Options], ReadBack] = field(default=lambda contents, options: dict)


def about_json(contents: Contents) -> dict[str, Any]:
    """Return contents as plain values, as ``bid data info --json`` prints them."""
    plain = asdict(contents) | {"extras": sorted(contents.extras), "rows": contents.rows}
    plain["episodes"] = None if contents.lengths is None else len(contents.lengths)
    return plain


def lost_extras(contents: Contents, kept: frozenset[str]) -> list[str]:
    """Return a sentence for each extra of ``contents`` that is not ``kept``."""
    return [f"{what} is not held" for name, what in EXTRAS.items() if name in contents.extras - kept]


def required_rate(contents: Contents, what: str) -> float:
    """Return the rows per second. Raises RecordingError if the data set does not say them."""
    if contents.rate_hz is None:
        raise RecordingError(
            f"{what} needs the rate of the rows, which the {contents.format} data set does not say; "
            "name the task, whose rate_hz counts then"
        )
    return contents.rate_hz


FORMATS: Final[Registry[Format]] = Registry(
    "data format", "bid_ros.formats", lambda: collect(__package__, "FORMAT"), RecordingError
)

TFRECORD: Final = ".tfrecord"


def format_of(path: Path) -> str:
    """Return the name of the format of the data set at ``path``.

    Raises:
        RecordingError: nothing is there, or no format, or more than one, knows it.
    """
    if not path.exists():
        raise RecordingError(f"data set {path} does not exist{fetch_hint(path, dataset=True)}")
    found = [name for name in FORMATS.names() if FORMATS.find(name).recognises(path)]
    if len(found) > 1:
        raise RecordingError(f"{path} looks like {' and '.join(found)}; name its format with --from")
    if not found and (TFRECORD in path.name or next(path.glob(f"**/*{TFRECORD}*"), None)):
        raise RecordingError(
            f"{path} holds TFRecord files, as RLDS has them, which bid does not read; valid is what LeRobot converts "
            f"them to, or another of {', '.join(FORMATS.names())}"
        )
    if not found:
        raise RecordingError(f"{path} is no data set that is known; valid formats are {', '.join(FORMATS.names())}")
    return found[0]


def open_source(path: str | Path, task: Task | None = None, name: str = "") -> Source:
    """Open the data set at ``path``.

    Args:
        path: file or folder.
        task: what the rows shall become; bags need it.
        name: its format; empty: the one that recognises it.

    Raises:
        RecordingError: nothing is there, no format knows it, it is damaged, or an episode has no rows.
    """
    path = Path(path)
    if name and not path.exists():
        raise RecordingError(f"data set {path} does not exist")
    source = FORMATS.find(name or format_of(path)).open(path, task)
    if 0 in (lengths := source.contents.lengths or ()):
        raise RecordingError(f"{path}: episode {lengths.index(0)} has no rows; valid is one row or more")
    return source

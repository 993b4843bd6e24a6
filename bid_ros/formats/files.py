"""Files of data sets: small ones read and written, parts of a conversion, and what bid_ros adds to other formats."""

import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import ABOUT, EXTRAS, Contents, DataEpisode

DAMAGE: Final = (
    OSError, ValueError, KeyError, TypeError, IndexError, EOFError, AttributeError, RuntimeError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Around reading a file of a data set: what a damaged one raises becomes one sentence.

    Raises:
        RecordingError: the file is missing, damaged or of another kind.
    """
    try:
        yield
    except DAMAGE as error:
        # Libraries also say "not found" of what should be inside the file.
        if isinstance(error, FileNotFoundError) and (error.filename or not path.exists()):
            raise RecordingError(f"data set file {error.filename or path} does not exist") from error
        said = " ".join(str(error).split()) or type(error).__name__
        said = f"it lacks {said}" if type(error) is KeyError and " " not in said else said
        raise RecordingError(f"data set file {path} is damaged or of another kind: {said}") from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises RecordingError if it is missing or damaged."""
    with readable(path):
        return json.loads(path.read_text())


def read_json_lines(path: Path) -> list[Any]:
    """Return the lines of a JSON lines file. Raises RecordingError if it is missing or damaged."""
    with readable(path):
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, indented as the LeRobot package does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=4, ensure_ascii=False))


def remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


EPISODE_FILE: Final = "episode.json"
REPORT_FILE: Final = "report.json"
ROWS_FILE: Final = "rows.npz"


@dataclass(frozen=True)
class EpisodeParts:
    """The folder with the written episodes of a piece of a data set.

    Attributes:
        folder: it exists.
    """

    folder: Path

    @classmethod
    def of(cls, below: Path, identity: Any) -> "EpisodeParts":
        """Make or find the folder of a piece; another identity has another one, so that they never mix.

        Args:
            below: folder of all parts.
            identity: plain values: the piece and its state, contents, format, options.
        """
        text = json.dumps(identity, sort_keys=True)
        parts = cls(below / hashlib.sha256(text.encode()).hexdigest()[:32])
        parts.folder.mkdir(parents=True, exist_ok=True)
        return parts

    def found(self) -> tuple[list[Path], dict[str, Any], bool]:
        """Return the folders of the whole episodes in order, the last report on the piece, and whether that is all."""
        whole: list[Path] = []
        report: dict[str, Any] = {}
        while (said := _report_in(folder := self._at(len(whole)))) and _sizes(folder) == said["sizes"]:
            whole.append(folder)
            report = said["report"]
        said = _report_in(self.folder)
        return (whole, said["report"], True) if said and said["episodes"] == len(whole) else (whole, report, False)

    def begin(self, number: int) -> Path:
        """Return an empty folder for the episode ``number``."""
        folder = self._at(number).with_suffix(".tmp")
        remove(folder)
        folder.mkdir()
        return folder

    def finish(self, number: int, report: Mapping[str, Any]) -> Path:
        """Say that the episode ``number`` is whole, with the report on the piece so far. Return its folder."""
        folder = self._at(number)
        temporary = folder.with_suffix(".tmp")
        (temporary / REPORT_FILE).write_text(json.dumps({"report": report, "sizes": _sizes(temporary)}))
        remove(folder)
        return temporary.rename(folder)

    def close(self, episodes: int, report: Mapping[str, Any]) -> None:
        """Say that the piece has no more than ``episodes`` episodes."""
        (self.folder / REPORT_FILE).write_text(json.dumps({"report": report, "episodes": episodes}))

    def _at(self, number: int) -> Path:
        return self.folder / f"{number:06d}"


def _report_in(folder: Path) -> dict[str, Any]:
    """Return the report in a folder; empty if there is none, or a half one."""
    try:
        content: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return content


def _sizes(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each file of an episode: a loss of power cuts files that were written last."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != REPORT_FILE)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def write_about(episode: DataEpisode, folder: Path) -> None:
    """Write what is known about an episode beside its arrays."""
    (folder / EPISODE_FILE).write_text(json.dumps({"rows": episode.rows, **episode.about()}))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what :func:`write_about` wrote: ``rows`` and the fields of an episode."""
    content: dict[str, Any] = read_json(folder / EPISODE_FILE)
    return content


class ArrayWriter:
    """Writes each episode as one file of plain arrays; for formats that are assembled from these."""

    _save: ClassVar[Callable[..., None]] = staticmethod(np.savez)

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def write_part(self, episode: DataEpisode, folder: Path) -> None:
        """Write one episode."""
        observed = {f"{at:03d}": episode.observations[column.name] for at, column in enumerate(self._contents.columns)}
        self._save(folder / ROWS_FILE, actions=episode.actions, stamps_ns=episode.stamps_ns, **observed)

    def read_parts(self, parts: Sequence[Path], names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes that were written, one in memory, with the columns ``names`` (None: all)."""
        for folder in parts:
            about = read_about(folder)
            about.pop("rows")
            with readable(folder), np.load(folder / ROWS_FILE) as arrays:
                yield DataEpisode(
                    observations={
                        column.name: arrays[f"{at:03d}"]
                        for at, column in enumerate(self._contents.columns)
                        if column.wanted(names)
                    },
                    actions=arrays["actions"],
                    stamps_ns=arrays["stamps_ns"],
                    **about,
                )


ESCAPED: Final = (("%", "%25"), ("/", "%2F"))  # names of arrays are parts of paths
DOT: Final = "%2E"


def to_key(name: str) -> str:
    """Return the name of a column as one part of a path; :func:`from_key` gives it back."""
    for plain, safe in ESCAPED:
        name = name.replace(plain, safe)
    return DOT + name[1:] if name.startswith(".") else name


def from_key(key: str) -> str:
    """Return the name of a column from what :func:`to_key` made of it."""
    key = "." + key.removeprefix(DOT) if key.startswith(DOT) else key
    for plain, safe in reversed(ESCAPED):
        key = key.replace(safe, plain)
    return key


def check_names(contents: Contents, taken: Collection[str], what: str) -> None:
    """Raise RecordingError if two columns have one name, or a column has none or one that ``what`` has ``taken``."""
    names = [column.name for column in contents.columns]
    for name in names:
        if not name or name in taken or names.count(name) > 1:
            raise RecordingError(f"a column is called '{name}'; valid in {what} is a name that nothing else has")


VERSION: Final = 1
KEY: Final = "bid_ros"
STAMP: Final = "stamp_ns"


@dataclass(frozen=True)
class Sidecar:
    """What was added.

    Attributes:
        task, signature, rate_hz: of the data, as in :class:`bid_ros.formats.base.Contents`.
        extras: what the episodes carry.
        episodes: label, seed and so on of each episode; as many as the data set has.
        ours: bid_ros wrote the data set.
    """

    task: str = ""
    signature: str = ""
    rate_hz: float | None = None
    extras: frozenset[str] = frozenset()
    episodes: tuple[Mapping[str, Any], ...] = ()
    ours: bool = False

    def about(self, number: int) -> dict[str, Any]:
        """Return the fields of an episode that are known beside its rows."""
        return dict(self.episodes[number]) if number < len(self.episodes) else {}


def head(contents: Contents) -> dict[str, Any]:
    """Return what is added for the data set as a whole."""
    return {
        "format": VERSION,
        "task": contents.task,
        "task_signature": contents.signature,
        "rate_hz": contents.rate_hz,
        "extras": sorted(contents.extras),
    }


def read_sidecar(content: Any, episodes: Sequence[Any], lengths: Sequence[int]) -> Sidecar:
    """Return what was added to a data set.

    Args:
        content: what :func:`head` made; None: nothing was added.
        episodes: what was added for each episode, with its ``rows``.
        lengths: rows of each episode that the data set has. If they differ, another tool changed the data since, and
            what was added about the episodes is no longer theirs.
    """
    if not isinstance(content, dict) or content.get("format") != VERSION:
        return Sidecar()
    task, signature = str(content.get("task", "")), str(content.get("task_signature", ""))
    rate = content.get("rate_hz")
    valid = all(isinstance(item, dict) for item in episodes)
    if not valid or [item.get("rows") for item in episodes] != list(lengths):
        return Sidecar(task, signature, rate, ours=True)
    extras = frozenset(content.get("extras", ())) & frozenset(EXTRAS)
    known = tuple({name: item[name] for name in ABOUT if name in item} for item in episodes)
    return Sidecar(task, signature, rate, extras, known, ours=True)

"""Files of data sets: small ones read and written, parts of a conversion, and what bid_ros adds to other formats."""

import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


IDENTITY_FILE: Final = "conversion.json"
EPISODE_FILE: Final = "episode.json"


@dataclass(frozen=True)
class EpisodeParts:
    """The folder of parts of one conversion.

    Attributes:
        folder: beside the target; it is removed when the target is whole.
    """

    folder: Path

    @classmethod
    def of(cls, target: Path, identity: dict[str, Any]) -> "EpisodeParts":
        """Make or find the folder for ``target``.

        Args:
            target: path of the data set to write.
            identity: of the conversion: source, contents, format, options.

        Raises:
            RecordingError: the folder has parts of another conversion.
        """
        parts = cls(target.with_name(f".{target.name}.parts"))
        said = parts.folder / IDENTITY_FILE
        text = json.dumps(identity, sort_keys=True)
        if said.exists() and said.read_text() != text:
            raise RecordingError(
                f"{parts.folder} has the parts of another conversion to {target}; remove it, or name another target"
            )
        if not said.exists():
            parts.folder.mkdir(parents=True, exist_ok=True)
            temporary = said.with_suffix(".tmp")
            temporary.write_text(text)
            temporary.replace(said)
        return parts

    def whole(self) -> list[Path]:
        """Return the folders of the whole episodes from the first on, in order."""
        found: list[Path] = []
        while (folder := self.folder / f"{len(found):06d}").is_dir():
            found.append(folder)
        return found

    def begin(self, number: int) -> Path:
        """Return an empty folder for the episode ``number``."""
        folder = self.folder / f"{number:06d}.tmp"
        remove(folder)
        folder.mkdir()
        return folder

    def origin(self, number: int) -> str:
        """Return where the whole episode ``number`` was read; empty if its source did not say."""
        file = self._origin(number)
        return file.read_text() if file.exists() else ""

    def _origin(self, number: int) -> Path:
        return self.folder / f"{number:06d}.origin"

    def finish(self, number: int, origin: str = "") -> None:
        """Say that the episode ``number`` is whole, and where it was read."""
        if origin:
            self._origin(number).write_text(origin)
        (self.folder / f"{number:06d}.tmp").rename(self.folder / f"{number:06d}")


def write_about(episode: DataEpisode, folder: Path) -> None:
    """Write what is known about an episode beside its arrays."""
    (folder / EPISODE_FILE).write_text(json.dumps({"rows": episode.rows, **episode.about()}))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what :func:`write_about` wrote: ``rows`` and the fields of an episode."""
    content: dict[str, Any] = read_json(folder / EPISODE_FILE)
    return content


class DescribedSource:
    """What keeps the contents of an opened data set."""

    _contents: Contents

    @property
    def contents(self) -> Contents:
        """What the data set holds."""
        return self._contents


class ArrayWriter:
    """Writes each episode as one ``.npy`` file for each array; for formats that are assembled from plain arrays."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def write_part(self, episode: DataEpisode, folder: Path) -> None:
        """Write one episode."""
        for number, column in enumerate(self._contents.columns):
            np.save(folder / f"{number:03d}.npy", np.ascontiguousarray(episode.observations[column.name]))
        np.save(folder / "actions.npy", np.ascontiguousarray(episode.actions))
        np.save(folder / "stamps_ns.npy", episode.stamps_ns)
        write_about(episode, folder)

    def _read_parts(self, parts: Sequence[Path]) -> Iterator[DataEpisode]:
        """Return the episodes that were written; their arrays stay on the disk until they are used."""
        for folder in parts:
            about = read_about(folder)
            about.pop("rows")
            with readable(folder):
                yield DataEpisode(
                    observations={
                        column.name: np.load(folder / f"{number:03d}.npy", mmap_mode="r")
                        for number, column in enumerate(self._contents.columns)
                    },
                    actions=np.load(folder / "actions.npy", mmap_mode="r"),
                    stamps_ns=np.load(folder / "stamps_ns.npy"),
                    **about,
                )


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
    """

    task: str = ""
    signature: str = ""
    rate_hz: float | None = None
    extras: frozenset[str] = frozenset()
    episodes: tuple[Mapping[str, Any], ...] = ()

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
        return Sidecar(task, signature, rate)
    extras = frozenset(content.get("extras", ())) & frozenset(EXTRAS)
    known = tuple({name: item[name] for name in ABOUT if name in item} for item in episodes)
    return Sidecar(task, signature, rate, extras, known)

"""Parts of a conversion: one folder for each whole episode, so that a killed conversion goes on after the last one."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import Contents, DataEpisode
from bid_ros.formats.files import read_json, readable, remove

IDENTITY: Final = "conversion.json"
ABOUT: Final = "episode.json"


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
        said = parts.folder / IDENTITY
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
    (folder / ABOUT).write_text(json.dumps({"rows": episode.rows, **episode.about()}))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what :func:`write_about` wrote: ``rows`` and the fields of an episode."""
    content: dict[str, Any] = read_json(folder / ABOUT)
    return content


def write_arrays(contents: Contents, episode: DataEpisode, folder: Path) -> None:
    """Write an episode as one ``.npy`` file for each array; for formats that are assembled from plain arrays."""
    for number, column in enumerate(contents.columns):
        np.save(folder / f"{number:03d}.npy", np.ascontiguousarray(episode.observations[column.name]))
    np.save(folder / "actions.npy", np.ascontiguousarray(episode.actions))
    np.save(folder / "stamps_ns.npy", episode.stamps_ns)
    write_about(episode, folder)


def read_arrays(contents: Contents, parts: Sequence[Path]) -> Iterator[DataEpisode]:
    """Return the episodes that :func:`write_arrays` wrote; their arrays stay on the disk until they are used."""
    for folder in parts:
        about = read_about(folder)
        about.pop("rows")
        with readable(folder):
            yield DataEpisode(
                observations={
                    column.name: np.load(folder / f"{number:03d}.npy", mmap_mode="r")
                    for number, column in enumerate(contents.columns)
                },
                actions=np.load(folder / "actions.npy", mmap_mode="r"),
                stamps_ns=np.load(folder / "stamps_ns.npy"),
                **about,
            )

"""The project's own data set, one ``.npz`` file, read and written one episode at a time."""

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import Column, Contents, DataEpisode, Format, Options, holds_images, lost_extras
from bid_ros.formats.files import ArrayWriter, readable
from bid_ros.formats.rows import native, runs_of, type_name
from bid_ros.recording.dataset import ARRAYS, INTERVENTION, foreign_file
from bid_ros.recording.dataset import FORMAT as VERSION

PREFIX: Final = "observation."
NAMES: Final = ("task", "task_signature")
KEPT: Final = frozenset({"stamps", "label", "seed", "truncated", "interventions"})


class NpzSource:
    """Reads a file of :class:`bid_ros.recording.dataset.Dataset`.

    Args:
        path: the file.

    Raises:
        RecordingError: the file is missing or damaged, or of another version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with readable(path), zipfile.ZipFile(path) as archive:
            if "about.npy" not in (names := archive.namelist()):
                raise foreign_file(path, [name.removesuffix(".npy") for name in names])
            self._about = json.loads(str(_whole(archive, "about")))
            if self._about.get("format") != VERSION:
                raise RecordingError(f"data set {path} has format {self._about.get('format')}; valid is {VERSION}")
            self._ends, self._seeds, self._truncated = (
                _whole(archive, name) for name in ("episode_ends", "seeds", "truncated")
            )
            there = f"{INTERVENTION}.npy" in archive.namelist()
            self._person = _whole(archive, INTERVENTION) if there else np.zeros(0, np.bool_)
            heads = {name: _head(archive, name) for name in _members(archive)}
            names = [name for name in heads if name.startswith(PREFIX)]
            for name in (*names, "actions", "stamps_ns"):
                if heads[name][0][0] != self._ends[-1]:
                    raise RecordingError(
                        f"data set {path}: {name} has {heads[name][0][0]} rows; episode_ends says {self._ends[-1]}"
                    )
            columns = tuple(_column(name.removeprefix(PREFIX), *heads[name]) for name in names)
            action = _column("action", *heads["actions"])
            lengths = tuple(np.diff(self._ends, prepend=0).tolist())
            task, signature = (str(self._about[name]) for name in NAMES)
            self.contents = Contents("npz", columns, action, lengths, None, task, signature, KEPT)

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on."""
        with ExitStack() as stack, readable(self._path):
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            observed = [column.name for column in self.contents.columns if column.wanted(names)]
            members = [*(PREFIX + name for name in observed), "actions", "stamps_ns"]
            streams = [_Rows(stack.enter_context(archive.open(f"{name}.npy"))) for name in members]
            for number, rows in enumerate(self.contents.lengths or ()):
                if number < start:
                    for stream in streams:
                        stream.skip(rows)
                    continue
                *values, actions, stamps = (stream.read(rows) for stream in streams)
                yield DataEpisode(
                    observations=dict(zip(observed, values, strict=True)),
                    actions=actions,
                    stamps_ns=stamps,
                    label=self._about["labels"][number],
                    seed=int(self._seeds[number]),
                    truncated=bool(self._truncated[number]),
                    interventions=runs_of(self._person[int(self._ends[number]) - rows : int(self._ends[number])]),
                )


class _Rows:
    """Reads rows of an array in a ``.npy`` stream, one after the other."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        shape, self._dtype = _read_head(stream)
        self._shape = shape[1:]
        self._row = int(np.prod(self._shape)) * self._dtype.itemsize

    def read(self, rows: int) -> NDArray[Any]:
        content = self._stream.read(rows * self._row)
        if len(content) != rows * self._row:
            raise ValueError("an array ends before its last row")
        return native(np.frombuffer(content, self._dtype)).reshape(rows, *self._shape)

    def skip(self, rows: int) -> None:
        left = rows * self._row
        while left and (content := self._stream.read(min(left, 1 << 20))):
            left -= len(content)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist()]


def _read_head(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
    shape, fortran, dtype = read(stream)
    if fortran:
        raise ValueError("an array is stored by columns")
    return tuple(shape), dtype


def _head(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(f"{name}.npy") as stream:
        return _read_head(stream)


def _whole(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
        return array


def _column(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Column:
    image = dtype in (np.uint8, np.uint16) and holds_images(shape[1:], dtype.name)
    return Column(name, shape[1:], type_name(dtype), image=image)


class NpzWriter(ArrayWriter):
    """Writes what :meth:`bid_ros.recording.dataset.Dataset.load` reads, one episode in memory.

    Args:
        contents: what is written: images uint8, the rest float64, as a task gives them.

    Raises:
        RecordingError: the contents are not those of a task.
    """

    _save = staticmethod(np.savez_compressed)  # bid data build keeps the parts

    def __init__(self, contents: Contents) -> None:
        if not contents.signature:
            raise RecordingError("an npz data set holds what a task observes and commands; name the task with --task")
        super().__init__(contents)

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the file. The hash is computed on the way, so the arrays are written in its order."""
        episodes = list(self.read_parts(parts, ()))
        rows = sum(episode.rows for episode in episodes)
        small = self._small(episodes)
        digest = hashlib.sha256()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            large = {PREFIX + column.name: column for column in self._contents.columns}
            for name in sorted({*small, *large, "actions"}):
                if name in small:
                    _store(archive, digest, name, small[name].dtype, small[name].shape, [small[name]])
                    continue
                column = large.get(name, self._contents.action)
                pieces = (item.actions for item in episodes)
                if name in large:
                    pieces = (each.observations[column.name] for each in self.read_parts(parts, (column.name,)))
                _store(archive, digest, name, np.dtype(column.dtype), (rows, *column.shape), pieces)
            text = np.array(digest.hexdigest())
            _store(archive, hashlib.sha256(), "sha256", text.dtype, (), [text])

    def _small(self, episodes: Sequence[DataEpisode]) -> Mapping[str, NDArray[Any]]:
        about = {
            "format": VERSION,
            "task": self._contents.task,
            "task_signature": self._contents.signature,
            "labels": [item.label for item in episodes],
        }
        found: dict[str, NDArray[Any]] = {
            "stamps_ns": np.concatenate([item.stamps_ns for item in episodes]).astype(np.int64),
            "episode_ends": np.cumsum([item.rows for item in episodes], dtype=np.int64),
            "seeds": np.array([item.seed for item in episodes], dtype=np.uint64),
            "truncated": np.array([item.truncated for item in episodes], dtype=np.bool_),
        }
        assert {*found, "actions"} == set(ARRAYS)
        person = np.concatenate([item.by_person for item in episodes])
        if person.any():
            found[INTERVENTION] = person
        return found | {"about": np.array(json.dumps(about, sort_keys=True))}


def _store(
    archive: zipfile.ZipFile,
    digest: Any,
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    pieces: Iterable[NDArray[Any]],
) -> None:
    digest.update(f"{name} {dtype.str} {shape}\n".encode())
    member = zipfile.ZipInfo(f"{name}.npy")  # its date is fixed: the same data give the same file
    member.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(member, "w", force_zip64=True) as stream:
        npy.write_array_header_1_0(stream, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
        for piece in pieces:
            content = np.ascontiguousarray(piece, dtype=dtype)
            digest.update(content.data)
            stream.write(content.tobytes())


def _losses(contents: Contents, options: Options) -> list[str]:
    return lost_extras(contents, KEPT)


def _recognises(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix == ".npz" or not zipfile.is_zipfile(path):
        return path.suffix == ".npz"  # truncated or of another program: reading it says so
    with readable(path), zipfile.ZipFile(path) as archive:
        return "about.npy" in archive.namelist()


FORMAT: Final = Format(
    recognises=_recognises,
    open=lambda path, task: NpzSource(path),
    writer=lambda contents, options: NpzWriter(contents),
    losses=_losses,
)

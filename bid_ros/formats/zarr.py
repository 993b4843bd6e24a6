"""The replay buffer of Diffusion Policy (Chi et al., RSS 2023): a zarr folder, or one zip file of it."""

import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra, install_line
from bid_ros.formats.base import ACTIONS, NO_ACTION, Column, Contents, DataEpisode, Format, holds_images
from bid_ros.formats.files import (
    KEY,
    STAMP,
    ArrayWriter,
    Sidecar,
    check_names,
    from_key,
    head,
    read_about,
    read_sidecar,
    readable,
    remove,
    to_key,
)
from bid_ros.formats.rows import native, row_stamps, type_name, value_names
from bid_ros.formats.umi import derived_action, hand_keys, joined
from bid_ros.formats.zarr_files import check_rows, missing_files, stored_files

CHUNK_BYTES: Final = 1 << 22
LONGEST_CHUNK: Final = 1024  # rows
DATA: Final = "data/"


class ZarrSource:
    """Reads ``data/*`` and ``meta/episode_ends``.

    Args:
        path: folder or zip file.

    Raises:
        RecordingError: damaged, or not a replay buffer.
    """

    def __init__(self, path: Path) -> None:
        with extra("data", "the format zarr", RecordingError):
            import zarr
            from zarr.storage import ZipStore
        self._path = path
        with readable(path), _decodable(path):
            self._root = zarr.open_group(ZipStore(path, mode="r") if path.is_file() else str(path), mode="r")
            if "meta/episode_ends" not in self._root or "data" not in self._root:
                raise RecordingError(f"{path} is no replay buffer; valid is one with data/action and meta/episode_ends")
            self._ends = _whole_numbers(np.asarray(self._root["meta/episode_ends"][:]), path)
            self._arrays = {
                key: item for key, item in self._root["data"].members(max_depth=None) if hasattr(item, "dtype")
            }
            self._attributes = dict(self._root.attrs)
            files, arrays = stored_files(path), sorted(self._arrays.items())
            notes = tuple(filter(None, (missing_files(files, DATA + key, array) for key, array in arrays)))
        stored = next((name for name in ACTIONS if name in self._arrays), "")
        self._commanded = (stored,) if stored else hand_keys(self._arrays)
        self._stored = bool(stored)
        self._check()
        lengths = tuple(np.diff(self._ends, prepend=0).tolist())
        added = self._attributes.get(KEY)
        self._side = read_sidecar(added, added.get("episodes", []) if isinstance(added, dict) else [], lengths)
        self.contents = replace(self._described(lengths, self._side), notes=notes)

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on."""
        starts = [0, *self._ends[:-1].tolist()]
        for number, (first, end) in enumerate(zip(starts, self._ends.tolist(), strict=True)):
            if number < start:
                continue
            with readable(self._path):
                stamps = row_stamps(end - first, self.contents.rate_hz)
                if "stamps" in self.contents.extras:
                    stamps = np.asarray(self._root[f"meta/{STAMP}"][first:end])
                observations = {
                    column.name: self._rows(column.key.removeprefix(DATA), first, end)
                    for column in self.contents.columns
                    if column.wanted(names)
                }
                parts = [self._rows(name, first, end) for name in self._commanded]
            actions = parts[0] if self._stored else joined(parts, end - first)
            yield DataEpisode(observations, actions, stamps, **({"seed": number} | self._side.about(number)))

    def _rows(self, name: str, first: int, end: int) -> NDArray[Any]:
        array = self._arrays[name]
        check_rows(self._path, DATA + name, array, first, end)
        return native(np.asarray(array[first:end]))

    def _action(self, columns: Mapping[str, Column]) -> Column:
        if not self._commanded:
            return NO_ACTION
        found = [columns[name] for name in self._commanded]
        return replace(found[0], name="action") if self._stored else derived_action(found)

    def _check(self) -> None:
        ends, rows = self._ends, {name: (*array.shape, "no")[0] for name, array in self._arrays.items()}
        if ends.ndim != 1 or len(ends) == 0 or (np.diff(ends, prepend=0) < 1).any():
            raise RecordingError(f"replay buffer {self._path} has episode_ends that do not increase from 1 or more")
        for name, count in rows.items():
            if count != ends[-1]:
                raise RecordingError(
                    f"replay buffer {self._path}: data/{name} has {count} rows; episode_ends says {ends[-1]}"
                )

    def _described(self, lengths: tuple[int, ...], side: Sidecar) -> Contents:
        columns = {key: _column(key, array, side.ours) for key, array in sorted(self._arrays.items())}
        has_stamps = "stamps" in side.extras and f"meta/{STAMP}" in self._root
        return Contents(
            "zarr",
            tuple(column for name, column in columns.items() if not (self._stored and name in self._commanded)),
            self._action(columns),
            lengths,
            side.rate_hz,
            side.task,
            side.signature,
            side.extras - (frozenset() if has_stamps else {"stamps"}),
        )


def _whole_numbers(ends: NDArray[Any], path: Path) -> NDArray[np.int64]:
    """Return the ends of the episodes as int64. Raises RecordingError if they are no whole numbers."""
    with np.errstate(invalid="ignore"):
        whole: NDArray[np.int64] = ends.astype(np.int64)
    if not np.array_equal(whole, ends):
        raise RecordingError(f"replay buffer {path} has episode_ends that are no whole numbers: {ends.tolist()[:3]}")
    return whole


@contextmanager
def _decodable(path: Path) -> Iterator[None]:
    """Around opening arrays: one coded as UMI codes its pictures says which extra reads it."""
    from numcodecs.errors import UnknownCodecError

    try:
        yield
    except UnknownCodecError as error:
        codec = error.codec_id.strip("'")
        if codec.startswith("imagecodecs_"):
            raise RecordingError(
                f"{path} has pictures of the codec {codec}, which needs the extra 'umi'; install it with: "
                f"{install_line('umi')}"
            ) from error
        raise


def _column(key: str, array: Any, ours: bool) -> Column:
    shape = tuple(array.shape[1:])
    names = value_names(dict(array.attrs).get("names"), shape)
    name, kind = from_key(key) if ours else key, type_name(array.dtype)
    return Column(name, shape, kind, holds_images(shape, kind), names, DATA + key)


class ZarrWriter(ArrayWriter):
    """Writes zarr format 2, which Diffusion Policy reads: Blosc with zstd, exact."""

    def __init__(self, contents: Contents) -> None:
        with extra("data", "the format zarr", RecordingError):
            import numcodecs  # noqa: F401
            import zarr  # noqa: F401
        super().__init__(contents)
        check_names(contents, ("action",), "zarr")

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the folder, or the zip file where the target's name ends in ``.zip``."""
        if target.suffix != ".zip":
            self._write(parts, target)
            return
        folder = target.with_suffix(".folder")
        remove(folder)
        self._write(parts, folder)
        _zip(folder, target)
        remove(folder)

    def _write(self, parts: Sequence[Path], folder: Path) -> None:
        import zarr

        root = zarr.open_group(str(folder), mode="w", zarr_format=2)
        abouts = [read_about(part) for part in parts]
        root.attrs[KEY] = {**head(self._contents), "episodes": abouts}
        ends = np.cumsum([item["rows"] for item in abouts], dtype=np.int64)
        rows, meta, data = int(ends[-1]), root.create_group("meta"), root.create_group("data")
        _create(meta, "episode_ends", ends.shape, "int64")[:] = ends
        if "stamps" in self._contents.extras:
            stamps = [item.stamps_ns for item in self.read_parts(parts, ())]
            _create(meta, STAMP, (rows,), "int64")[:] = np.concatenate(stamps)
        for column in self._contents.columns:
            pieces = (item.observations[column.name] for item in self.read_parts(parts, (column.name,)))
            _fill(data, to_key(column.name), column, rows, pieces)
        pieces = (item.actions for item in self.read_parts(parts, ()))
        _fill(data, "action", self._contents.action, rows, pieces)


def _create(group: Any, name: str, shape: tuple[int, ...], dtype: str) -> Any:
    import numcodecs

    row = int(np.prod(shape[1:])) * np.dtype(dtype).itemsize
    chunk = max(1, min(shape[0], LONGEST_CHUNK, CHUNK_BYTES // max(row, 1)))
    compressor = numcodecs.Blosc(cname="zstd", clevel=5, shuffle=numcodecs.Blosc.BITSHUFFLE)
    # Chunks of zeros are written, too: so one that is not there was lost.
    coding = {"chunks": (chunk, *shape[1:]), "compressors": compressor, "config": {"write_empty_chunks": True}}
    return group.create_array(name, shape=shape, dtype=dtype, **coding)


def _fill(group: Any, name: str, column: Column, rows: int, pieces: Iterable[NDArray[Any]]) -> None:
    array = _create(group, name, (rows, *column.shape), column.dtype)
    if column.names:
        array.attrs["names"] = list(column.names)
    at = 0
    for block in _blocks(pieces, array.chunks[0]):
        array[at : at + len(block)] = block
        at += len(block)


def _blocks(pieces: Iterable[NDArray[Any]], rows: int) -> Iterator[NDArray[Any]]:
    """Return the rows of all pieces in blocks of ``rows``, so that each chunk is compressed once."""
    waiting: list[NDArray[Any]] = []
    for piece in pieces:
        waiting.append(piece)
        while sum(map(len, waiting)) >= rows:
            whole = np.concatenate(waiting)
            yield whole[:rows]
            waiting = [whole[rows:]]
    if any(map(len, waiting)):
        yield np.concatenate(waiting)


def _zip(folder: Path, target: Path) -> None:
    """Write a zip file without compression, as the chunks are compressed; the same data give the same file."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())


def _recognises(path: Path) -> bool:
    if path.is_dir():
        ends = path / "meta" / "episode_ends"
        return (path / ".zgroup").exists() or (ends / ".zarray").exists() or (ends / "zarr.json").exists()
    if path.suffix != ".zip":
        return False
    if not zipfile.is_zipfile(path):
        return True  # truncated: reading it says so
    with readable(path), zipfile.ZipFile(path) as archive:
        return not {".zgroup", "zarr.json"}.isdisjoint(archive.namelist())


FORMAT: Final = Format(
    recognises=_recognises,
    open=lambda path, task: ZarrSource(path),
    writer=lambda contents, options: ZarrWriter(contents),
)

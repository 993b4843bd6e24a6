"""Files of the arrays of zarr: those that are not there, and those that were cut off. zarr says nothing of either."""

import math
import os
import zipfile
from bisect import bisect_left
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import RecordingError

ABOUT_ARRAY: Final = (".zarray", ".zattrs", "zarr.json")  # files beside the chunks of an array
BLOSC_HEAD: Final = 16  # bytes; the last four say how many bytes the chunk has


def stored_files(path: Path) -> list[str]:
    """Return the names of the files in a folder or zip file of zarr, sorted."""
    if path.is_file():
        with zipfile.ZipFile(path) as archive:
            return sorted(name for name in archive.namelist() if not name.endswith("/"))
    return sorted((Path(at) / name).relative_to(path).as_posix() for at, _, names in os.walk(path) for name in names)


def missing_files(stored: list[str], key: str, array: Any) -> str:
    """Return a sentence if files of an array are not there, as after a copy that was not finished; else empty.

    Args:
        stored: names of all files, sorted.
        key: of the array, such as ``data/action``.
        array: it.
    """
    above = f"{key}/"
    there = bisect_left(stored, above + chr(0x10FFFF)) - bisect_left(stored, above)
    there -= sum(stored[bisect_left(stored, above + name) :][:1] == [above + name] for name in ABOUT_ARRAY)
    sizes = zip(array.shape, array.shards or array.chunks, strict=True)
    count = math.prod(-(-size // max(chunk, 1)) for size, chunk in sizes)
    if there >= count:
        return ""
    return f"{key} lacks {count - there} of {count} files: zarr takes all values in them as {array.fill_value}"


def check_rows(path: Path, key: str, array: Any, first: int, end: int) -> None:
    """Raise RecordingError if a file with some rows of an array is cut off, which Blosc decodes to any numbers.

    Args:
        path: folder of zarr. Of a zip file the checksums tell it.
        key: of the array, such as ``data/action``.
        array: it.
        first, end: numbers of the rows.
    """
    if path.is_file() or array.shards or [type(each).__name__ for each in array.compressors] != ["Blosc"]:
        return
    for file in _files(path / key, array, first, end):
        with file.open("rb") as stream:
            head, size = stream.read(BLOSC_HEAD), file.stat().st_size
        if len(head) < BLOSC_HEAD or size != int.from_bytes(head[12:], "little"):
            raise RecordingError(f"{file} is damaged or cut off: its {size} bytes are not those that it says it has")


def _files(folder: Path, array: Any, first: int, end: int) -> Iterator[Path]:
    """Yield the files that are there of those that hold some rows of an array."""
    rows, *others = array.chunks
    counts = [-(-size // max(chunk, 1)) for size, chunk in zip(array.shape[1:], others, strict=True)]
    for at in product(range(first // rows, -(-end // rows)), *map(range, counts)):
        file = folder / array.metadata.encode_chunk_key(at)
        if file.is_file():
            yield file

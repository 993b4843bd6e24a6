"""The folder of a bench: one JSON line an episode, their paths beside them, and what they were made with.

Nothing is ever overwritten. Lines are appended, each with a check sum, in one write a unit; a file in which a line is
damaged is refused as it is.
"""

import fcntl
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.rollout import UnitDone
from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text, replacing

ROWS: Final = "episodes.jsonl"
HEADER: Final = "bench.json"
TRACES: Final = "traces"
_CHECK: Final = "crc"
_PATHS: Final = ("commands", "agents", "blocks")
LATER: Final = ("correction_sha256",)
"""What older results do not say; they were made without."""
SIMULATOR: Final = "simulator"
UNSAID: Final = (SIMULATOR,)
"""What older results do not say; nobody knows whether it was the same."""
Key = tuple[str, int, int]
"""(key of the cell, seed, episode)"""


class Results:
    """Results in a new or an existing folder.

    Args:
        folder: the folder. It is created if it is missing.
        header: what all rows have in common. It must agree with the rows in the folder.

    Attributes:
        unsaid: names in the header whose values the folder does not say, because its results are older.

    Raises:
        BidError: the folder's results are damaged, were made with something else, or another bench writes to them.
    """

    def __init__(self, folder: str | Path, header: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.rows: dict[Key, dict[str, Any]] = {}
        self.unsaid: list[str] = []
        (self.folder / TRACES).mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.folder / ROWS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            self._begin(header)
        except BaseException:
            os.close(self._file)
            raise

    def _begin(self, header: Mapping[str, Any]) -> None:
        """Read what is there, or write the header. Another bench may write until the file is locked."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BidError(f"results {self.folder} are being written by another bench; choose another --out") from error
        if os.fstat(self._file).st_size:
            self._compare(header)
            self.rows = read_rows(self.folder)
        else:
            replace_text(self.folder / HEADER, json.dumps(header, indent=1, sort_keys=True) + "\n")

    def add(self, done: UnitDone) -> None:
        """Append the episodes of a unit, their paths first. A full disk raises OSError, and nothing is appended."""
        name = f"{done.unit.cell.key}_{done.unit.seed}_{done.unit.episodes[0]}_{len(done.rows)}.npz"
        _write_traces(self.folder / TRACES / name, done)
        lines = []
        for row in done.rows:
            row = {**row, "trace": name}
            self.rows[row_key(row)] = row
            lines.append(encode_row(row))
        content, before = "".join(lines).encode(), os.fstat(self._file).st_size
        try:
            while content:  # a disk that gets full takes a part first, and then says so
                content = content[os.write(self._file, content) :]
        except OSError as error:
            os.ftruncate(self._file, before)  # a cut line would be refused as damaged when the bench goes on
            raise OSError(error.errno, error.strerror, str(self.folder / ROWS)) from error

    def close(self) -> None:
        """Release the folder for other writers."""
        os.close(self._file)

    def _compare(self, header: Mapping[str, Any]) -> None:
        try:
            before = json.loads((self.folder / HEADER).read_text())
            self.unsaid = [name for name in UNSAID if name in header and name not in before]
            said = [name for name in header if name not in self.unsaid]
            found = {name: before.get(name) if name in LATER else before[name] for name in said}
            different = [name for name in said if found[name] != header[name]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BidError(
                f"results {self.folder} are damaged: {HEADER} cannot be read; choose another --out"
            ) from error
        if different:
            name = different[0]
            raise BidError(
                f"results {self.folder} were made with {name} {found[name]!r}, not {header[name]!r}; "
                f"choose another --out"
            )


def row_key(row: Mapping[str, Any]) -> Key:
    """Return the key of a row."""
    return str(row["key"]), int(row["seed"]), int(row["episode"])


def encode_row(row: Mapping[str, Any]) -> str:
    """Return a row as a line with its check sum."""
    return json.dumps({**row, _CHECK: _checksum(row)}, sort_keys=True) + "\n"


def read_rows(folder: str | Path) -> dict[Key, dict[str, Any]]:
    """Read every row of a folder.

    Raises:
        BidError: the file is missing, or a line is not what was written.
    """
    path = Path(folder) / ROWS
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BidError(f"results {path} cannot be read: {error.strerror}") from error
    rows = {}
    # The last line ends the file; without that it was cut off.
    for number, line in enumerate(lines if lines[-1] else lines[:-1], start=1):
        try:
            row = json.loads(line)
            damaged = row.pop(_CHECK) != _checksum(row)
            rows[row_key(row)] = row
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged = True
        if damaged:
            raise BidError(
                f"results {path} are damaged in line {number}, nothing was changed; "
                f"remove that line or choose another --out"
            )
    return rows


def load_trace(folder: str | Path, row: Mapping[str, Any]) -> EpisodePath:
    """Return the path of a row's episode; BidError if its file is missing or damaged."""
    path = Path(folder) / TRACES / str(row["trace"])
    try:
        with np.load(path, allow_pickle=False) as content:
            index = int(np.flatnonzero(content["episodes"] == row["episode"])[0])
            steps = np.concatenate([[0], np.cumsum(content["steps"])])
            first, last = int(steps[index]), int(steps[index + 1])
            states = slice(first + index, last + index + 1)
            return EpisodePath(content["commands"][first:last], content["agents"][states], content["blocks"][states])
    except (OSError, ValueError, KeyError, IndexError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())
        raise BidError(
            f"path {path} cannot be read ({reason}); remove it and its episodes' lines, or choose another --out"
        ) from error


def write_parquet(folder: str | Path, rows: Mapping[Key, Mapping[str, Any]]) -> Path | None:
    """Write the rows as ``episodes.parquet``, the cell's settings as columns of their own.

    Returns:
        The file, or None where the package pyarrow is not installed.
    """
    try:
        from pyarrow import Table, parquet
    except ImportError:
        return None
    flat = [{**row["cell"], **{name: value for name, value in row.items() if name != "cell"}} for row in rows.values()]
    names = dict.fromkeys(name for row in flat for name in row)  # the first row may be older than a setting
    flat = [{name: row.get(name) for name in names} for row in flat]
    path = Path(folder) / "episodes.parquet"
    with replacing(path) as part:
        parquet.write_table(Table.from_pylist(flat), str(part))
    return path


def _checksum(row: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(row, sort_keys=True).encode())


def _write_traces(path: Path, done: UnitDone) -> None:
    paths: dict[str, Any] = {name: np.concatenate([getattr(trace, name) for trace in done.traces]) for name in _PATHS}
    steps = np.array([len(trace.commands) for trace in done.traces])
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, episodes=np.array(done.unit.episodes), steps=steps, **paths)

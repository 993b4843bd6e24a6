"""Data sets in memory, written as others write them and then made odd."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet

from bid_ros.formats import Column, Contents, DataEpisode, Options, convert
from bid_ros.formats.rows import row_stamps

SIZE = (32, 48, 3)


class Memory:
    """A data set in memory.

    Args:
        columns, action: what it holds; image columns are uint8 or float.
        episodes: one by one.
        more: other fields of its contents.
    """

    def __init__(self, columns: Sequence[Column], action: Column, episodes: Sequence[DataEpisode], **more) -> None:
        lengths = tuple(item.rows for item in episodes)
        self.contents = Contents("memory", tuple(columns), action, lengths, **({"rate_hz": 10.0} | more))
        self.held = list(episodes)

    def episodes(self, start: int = 0, names=None):
        yield from self.held[start:]


def counted(lengths: Sequence[int] = (16, 12), **more) -> Memory:
    """Return a data set whose state, action and picture say which row they are of, counted through all episodes."""
    first, episodes = 0, []
    for rows in lengths:
        number = np.arange(first, first + rows)
        state = np.repeat(number[:, None], 2, axis=1).astype(np.float32)
        pictures = np.broadcast_to((7 * number).astype(np.uint8)[:, None, None, None], (rows, *SIZE)).copy()
        known = {"seed": len(episodes), "text": "Pick it."}
        episodes.append(DataEpisode({"state": state, "wrist": pictures}, state, row_stamps(rows, 10.0), **known))
        first += rows
    columns = (Column("state", (2,), "float32"), Column("wrist", SIZE, "uint8", image=True))
    return Memory(columns, Column("action", (2,), "float32"), episodes, **({"extras": frozenset({"text"})} | more))


def seen(pictures: np.ndarray) -> list[int]:
    """Return which row of :func:`counted` each picture is of, also after it was a video."""
    return np.round(pictures.reshape(len(pictures), -1).mean(axis=1) / 7).astype(int).tolist()


def written(path: Path, version: str = "v21", images: str = "video", lengths: Sequence[int] = (16, 12)) -> Path:
    """Write :func:`counted` as a data set of LeRobot, without what bid_ros adds."""
    convert(counted(lengths), path, f"lerobot_{version}", Options(images))
    (path / "meta" / "bid_ros.json").unlink()
    return path


def change(path: Path, edit) -> None:
    """Replace the columns of a Parquet file by what ``edit`` makes of them: lists by name; its schema stays."""
    table = parquet.read_table(path)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    edit(columns)
    parquet.write_table(pyarrow.Table.from_pydict(columns, table.schema), path)


def keep(columns: dict[str, list], rows: Sequence[int]) -> None:
    """Keep some rows of a table."""
    for name, values in columns.items():
        columns[name] = [values[row] for row in rows]


def edit_info(path: Path, **fields) -> None:
    """Replace fields of ``meta/info.json``."""
    info = json.loads((path / "meta/info.json").read_text())
    (path / "meta/info.json").write_text(json.dumps(info | fields))


def edit_lines(path: Path, edit) -> None:
    """Replace the lines of a JSON lines file by what ``edit`` makes of each."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(edit(line)) + "\n" for line in lines))

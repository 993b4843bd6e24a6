"""LeRobotDataset v3.0: many episodes share a table, and many share a video of each camera."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.formats.base import Contents, Format, Options, Source
from bid_ros.formats.files import read_about, readable, to_key, write_json
from bid_ros.formats.lerobot.fates import fates, read_back
from bid_ros.formats.lerobot.layout import CHUNK, INFO, Layout, read_layout, version_of
from bid_ros.formats.lerobot.part_writer import TABLE, PartWriter, Stats, joined, losses
from bid_ros.formats.lerobot.source import LeRobotSource, Place, checked_places
from bid_ros.formats.lerobot.tables import arrow, numbered
from bid_ros.formats.lerobot.video import join

VERSION: Final = "v3.0"
FILE: Final = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA: Final = f"data/{FILE}.parquet"
VIDEO: Final = f"videos/{{video_key}}/{FILE}.mp4"
EPISODES: Final = f"meta/episodes/{FILE}.parquet"
TASKS: Final = "meta/tasks.parquet"
STATS: Final = "meta/stats.json"
DATA_MB: Final = 100
VIDEO_MB: Final = 200
MB: Final = 1 << 20
EPISODES_A_FILE: Final = 1000


def _open(path: Path, task: Task | None) -> Source:
    layout = read_layout(path, VERSION)
    rows = _episode_rows(path)
    with readable(path / "meta" / "episodes"):
        rows.sort(key=lambda row: int(row["episode_index"]))
        firsts: dict[tuple[int, int], int] = {}
        for row in rows:
            firsts.setdefault((row["data/chunk_index"], row["data/file_index"]), int(row["dataset_from_index"]))
        places = [_place(layout, row, firsts) for row in rows]
    return LeRobotSource("lerobot_v30", layout, checked_places(layout, places), _task_texts(path))


def _task_texts(root: Path) -> dict[int, str]:
    """Return the text of each task by its number; nothing of a data set that does not say them."""
    path = root / TASKS
    if not path.exists():
        return {}
    _, parquet = arrow()
    with readable(path):
        columns = parquet.read_table(path).to_pydict()
        numbers = columns.pop("task_index")
        texts = columns.get("task") or next(iter(columns.values()))  # pandas may not have named the index
        return {int(number): str(text) for number, text in zip(numbers, texts, strict=True)}


def _episode_rows(root: Path) -> list[dict[str, Any]]:
    """Return a row for each episode, without its statistics."""
    _, parquet = arrow()
    files = sorted((root / "meta" / "episodes").glob("*/*.parquet"))
    if not files:
        raise RecordingError(f"LeRobot data set {root} lacks meta/episodes/chunk-000/file-000.parquet")
    rows: list[dict[str, Any]] = []
    for path in files:
        with readable(path):
            file = parquet.ParquetFile(path)
            names = [name for name in file.schema_arrow.names if not name.startswith("stats/")]
            rows += file.read(columns=names).to_pylist()
    return rows


def _place(layout: Layout, row: Mapping[str, Any], firsts: Mapping[tuple[int, int], int]) -> Place:
    at = (row["data/chunk_index"], row["data/file_index"])
    videos = {}
    for column in layout.videos():
        where = {name: row[f"videos/{column.key}/{name}"] for name in ("chunk_index", "file_index")}
        path = layout.root / layout.info["video_path"].format(video_key=column.key, **where)
        videos[column.key] = (path, float(row[f"videos/{column.key}/from_timestamp"]))
    return Place(
        int(row["episode_index"]),
        int(row["length"]),
        tuple(row.get("tasks") or ()),
        layout.root / layout.info["data_path"].format(chunk_index=at[0], file_index=at[1]),
        int(row["dataset_from_index"]) - firsts[at],
        videos,
    )


class LeRobotV30Writer(PartWriter):
    """Writes a LeRobotDataset v3.0.

    Args:
        contents: what is written.
        options: how.
        data_mb, video_mb: size above which the next table or video begins.
    """

    def __init__(
        self, contents: Contents, options: Options, data_mb: float = DATA_MB, video_mb: float = VIDEO_MB
    ) -> None:
        super().__init__(contents, options, VERSION)
        self._data_mb, self._video_mb = data_mb, video_mb

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the data set."""
        tasks = self.tasks(parts)
        rows = self._data(parts, target, tasks)
        for key in self.plan.images.values() if self.plan.video else ():
            self._videos(parts, target, key, rows)
        stats = [
            self.stats(part, number, row["dataset_from_index"], self.row_tasks(part, tasks))
            for number, (part, row) in enumerate(zip(parts, rows, strict=True))
        ]
        self._episodes(target, rows, stats)
        self._tasks(target, tasks)
        write_json(target / STATS, {key: joined([each[key] for each in stats]) for key in self.plan.features})
        total = rows[-1]["dataset_to_index"]
        own = {
            "data_files_size_in_mb": self._data_mb,
            "video_files_size_in_mb": self._video_mb,
            "data_path": DATA,
            "video_path": VIDEO if self.plan.video and self.plan.images else None,
        }
        write_json(target / INFO, self.info(len(parts), total, len(tasks), own))
        self.write_side(parts, target)

    def _data(self, parts: Sequence[Path], target: Path, tasks: Mapping[str, int]) -> list[dict[str, Any]]:
        """Write the tables, an episode a row group. Return a row of ``meta/episodes`` for each episode."""
        _, parquet = arrow()
        rows: list[dict[str, Any]] = []
        sizes = [(part / TABLE).stat().st_size for part in parts]
        for number, group in enumerate(_files(sizes, self._data_mb * MB)):
            at = _at(number)
            path = target / DATA.format(**at)
            path.parent.mkdir(parents=True, exist_ok=True)
            with parquet.ParquetWriter(path, self.schema) as writer:
                for episode in group:
                    first = rows[-1]["dataset_to_index"] if rows else 0
                    part, length = parts[episode], read_about(parts[episode])["rows"]
                    own = self.row_tasks(part, tasks)
                    table = numbered(parquet.read_table(part / TABLE), episode, first, own)
                    writer.write_table(table.cast(self.schema))
                    rows.append(
                        {
                            "episode_index": episode,
                            "tasks": self.unique_texts(part),
                            "length": length,
                            **{f"data/{name}": value for name, value in at.items()},
                            "dataset_from_index": first,
                            "dataset_to_index": first + length,
                        }
                    )
        return rows

    def _videos(self, parts: Sequence[Path], target: Path, key: str, rows: list[dict[str, Any]]) -> None:
        """Write the videos of a camera, and where each episode is in them."""
        sizes = [(part / f"{to_key(key)}.mp4").stat().st_size for part in parts]
        for number, group in enumerate(_files(sizes, self._video_mb * MB)):
            at = _at(number)
            join(
                [parts[episode] / f"{to_key(key)}.mp4" for episode in group], target / VIDEO.format(video_key=key, **at)
            )
            frames = 0
            for episode in group:
                end = frames + rows[episode]["length"]
                place = {**at, "from_timestamp": frames / self.plan.fps, "to_timestamp": end / self.plan.fps}
                rows[episode] |= {f"videos/{key}/{name}": value for name, value in place.items()}
                frames = end

    def _episodes(self, target: Path, rows: Sequence[dict[str, Any]], stats: Sequence[dict[str, Stats]]) -> None:
        pyarrow, parquet = arrow()
        for number, first in enumerate(range(0, len(rows), EPISODES_A_FILE)):
            at = _at(number)
            whole = []
            for episode in range(first, min(first + EPISODES_A_FILE, len(rows))):
                flat = {
                    f"stats/{key}/{name}": value for key, each in stats[episode].items() for name, value in each.items()
                }
                whole.append({**rows[episode], **flat, **{f"meta/episodes/{name}": each for name, each in at.items()}})
            path = target / EPISODES.format(**at)
            path.parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(pyarrow.Table.from_pylist(whole), path)

    def _tasks(self, target: Path, tasks: Mapping[str, int]) -> None:
        """Write the tasks as pandas does: the text is the index of the table."""
        pyarrow, parquet = arrow()
        table = pyarrow.table({"task_index": list(tasks.values()), "task": list(tasks)})
        kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
        index = {"name": None, "field_name": None, "pandas_type": "unicode", "numpy_type": "object"}
        about = {
            "index_columns": ["task"],
            "column_indexes": [{**index, "metadata": {"encoding": "UTF-8"}}],
            "columns": [
                {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
                for name, (kind, numpy) in kinds.items()
            ],
            "attributes": {},
            "creator": {"library": "pyarrow", "version": pyarrow.__version__},
            "pandas_version": "2.3.3",
        }
        parquet.write_table(table.replace_schema_metadata({"pandas": json.dumps(about)}), target / TASKS)


def _files(sizes: Sequence[int], limit: float) -> Iterator[list[int]]:
    """Return the episodes of each file: as many as stay below ``limit`` bytes, at least one."""
    group: list[int] = []
    filled = 0
    for number, size in enumerate(sizes):
        if group and filled + size > limit:
            yield group
            group, filled = [], 0
        group.append(number)
        filled += size
    yield group


def _at(number: int) -> dict[str, int]:
    return {"chunk_index": number // CHUNK, "file_index": number % CHUNK}


def _recognises(path: Path) -> bool:
    version = version_of(path)
    return bool(version) and not version.startswith("v2")


FORMAT: Final = Format(
    recognises=_recognises,
    open=_open,
    writer=LeRobotV30Writer,
    losses=losses,
    fates=fates,
    read_back=read_back,
)

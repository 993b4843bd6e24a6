"""LeRobotDataset v2.1: one table, and one video for each camera, an episode."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.formats.base import Contents, Format, Options, Source
from bid_ros.formats.files import read_about, read_json_lines, readable, to_key, write_json
from bid_ros.formats.lerobot.fates import fates, read_back
from bid_ros.formats.lerobot.layout import CHUNK, INFO, Layout, read_layout, version_of
from bid_ros.formats.lerobot.part_writer import TABLE, PartWriter, losses
from bid_ros.formats.lerobot.source import LeRobotSource, Place, checked_places
from bid_ros.formats.lerobot.tables import arrow, numbered

VERSION: Final = "v2.1"
DATA: Final = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO: Final = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
EPISODES: Final = "meta/episodes.jsonl"
TASKS: Final = "meta/tasks.jsonl"
STATS: Final = "meta/episodes_stats.jsonl"


def _open(path: Path, task: Task | None) -> Source:
    layout = read_layout(path, VERSION)
    lines = read_json_lines(path / EPISODES)
    with readable(path / EPISODES):
        lines.sort(key=lambda line: int(line["episode_index"]))
        places = [_place(layout, line) for line in lines]
    return LeRobotSource("lerobot_v21", layout, checked_places(layout, places), _task_texts(path))


def _task_texts(root: Path) -> dict[int, str]:
    """Return the text of each task by its number; nothing of a data set that does not say them."""
    path = root / TASKS
    lines = read_json_lines(path) if path.exists() else []
    with readable(path):
        return {int(line["task_index"]): str(line["task"]) for line in lines}


def _place(layout: Layout, line: Mapping[str, Any]) -> Place:
    number = int(line["episode_index"])
    at = {"episode_index": number, "episode_chunk": number // int(layout.info.get("chunks_size") or CHUNK)}
    videos = {
        column.key: (layout.root / layout.info["video_path"].format(**at, video_key=column.key), 0.0)
        for column in layout.videos()
    }
    data = layout.root / layout.info["data_path"].format(**at)
    return Place(number, int(line["length"]), tuple(line.get("tasks") or ()), data, 0, videos)


class LeRobotV21Writer(PartWriter):
    """Writes a LeRobotDataset v2.1."""

    def __init__(self, contents: Contents, options: Options) -> None:
        super().__init__(contents, options, VERSION)

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the data set."""
        _, parquet = arrow()
        tasks, first = self.tasks(parts), 0
        (target / "meta").mkdir(parents=True)
        with (target / EPISODES).open("w") as episodes, (target / STATS).open("w") as stats:
            for number, part in enumerate(parts):
                rows, row_tasks = read_about(part)["rows"], self.row_tasks(part, tasks)
                at = {"episode_index": number, "episode_chunk": number // CHUNK}
                data = target / DATA.format(**at)
                data.parent.mkdir(parents=True, exist_ok=True)
                table = numbered(parquet.read_table(part / TABLE), number, first, row_tasks)
                parquet.write_table(table, data)
                for key in self.plan.images.values() if self.plan.video else ():
                    video = target / VIDEO.format(**at, video_key=key)
                    video.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(part / f"{to_key(key)}.mp4", video)
                _line(episodes, {"episode_index": number, "tasks": self.unique_texts(part), "length": rows})
                _line(stats, {"episode_index": number, "stats": self._stats(part, number, first, row_tasks)})
                first += rows
        with (target / TASKS).open("w") as stream:
            for text, number in tasks.items():
                _line(stream, {"task_index": number, "task": text})
        videos = len(self.plan.images) * len(parts) if self.plan.video else 0
        totals = {
            "total_videos": videos,
            "total_chunks": -(-len(parts) // CHUNK),
            "data_path": DATA,
            "video_path": VIDEO if videos else None,
        }
        write_json(target / INFO, self.info(len(parts), first, len(tasks), totals))
        self.write_side(parts, target)

    def _stats(self, part: Path, number: int, first: int, tasks: NDArray[np.int64]) -> dict[str, Any]:
        """Return the statistics that this version knows: no quantiles."""
        found = self.stats(part, number, first, tasks)
        return {
            key: {name: value for name, value in stats.items() if not name.startswith("q")}
            for key, stats in found.items()
        }


def _line(stream: Any, content: Any) -> None:
    stream.write(json.dumps(content, ensure_ascii=False) + "\n")


def _recognises(path: Path) -> bool:
    return version_of(path).startswith("v2")


FORMAT: Final = Format(
    recognises=_recognises,
    open=_open,
    writer=LeRobotV21Writer,
    losses=losses,
    fates=fates,
    read_back=read_back,
)

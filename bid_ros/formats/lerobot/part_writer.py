"""Episodes of a LeRobotDataset on their own: table, videos and statistics, before they are put together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bid_ros.formats.base import EXTRAS as KEPT
from bid_ros.formats.base import Contents, DataEpisode, Options, lost_extras
from bid_ros.formats.episode_parts import read_about
from bid_ros.formats.files import read_json, write_json
from bid_ros.formats.lerobot.layout import SIDECAR, ColumnPlan, plan_of
from bid_ros.formats.lerobot.stats import Stats, image_stats, vector_stats
from bid_ros.formats.lerobot.tables import arrow, part_arrays, part_table, schema_of
from bid_ros.formats.lerobot.video import av, encode
from bid_ros.formats.sidecar import head

TABLE: Final = "rows.parquet"
STATS: Final = "stats.json"
INDEXED: Final = ("episode_index", "index", "task_index")


class PartWriter:
    """Writes episodes as parts of a LeRobotDataset.

    Args:
        contents: what is written.
        options: how.
        version: ``v2.1`` or ``v3.0``.

    Raises:
        RecordingError: LeRobot cannot hold the contents, or the extra ``data`` is not installed.
    """

    def __init__(self, contents: Contents, options: Options, version: str) -> None:
        self.plan = plan_of(contents, options)
        self.contents, self.version = contents, version
        self._quality = options.quality
        self.schema = schema_of(self.plan, version)
        if self.plan.video and self.plan.images:
            av()

    def write_part(self, episode: DataEpisode, folder: Path) -> None:
        """Write one episode."""
        _, parquet = arrow()
        arrays = part_arrays(self.plan, episode)
        parquet.write_table(part_table(self.plan, arrays, episode, self.schema), folder / TABLE)
        stats = {key: vector_stats(values) for key, values in arrays.items()}
        for name, key in self.plan.images.items():
            stats[key] = image_stats(episode.observations[name])
            if self.plan.video:
                encode(episode.observations[name], folder / f"{key}.mp4", self.plan.fps, self._quality)
        (folder / STATS).write_text(json.dumps(stats))

    def stats(self, part: Path, episode: int, first: int, task: int) -> dict[str, Stats]:
        """Return the statistics of an episode by feature, with those of the columns that number it."""
        found: dict[str, Stats] = read_json(part / STATS)
        rows = read_about(part)["rows"]
        ramp = {name: list(values) for name, values in found["frame_index"].items()}
        found["index"] = {
            name: [value + first for value in values] if name not in ("std", "count") else values
            for name, values in ramp.items()
        }
        for name, value in (("episode_index", episode), ("task_index", task)):
            constant = {key: [0.0] if key == "std" else [float(value)] for key in ramp}
            found[name] = {**constant, "count": [rows]}
        return {key: found[key] for key in self.plan.features}

    def tasks(self, parts: Sequence[Path]) -> dict[str, int]:
        """Return the number of each task's text, in the order in which the episodes bring them."""
        texts = dict.fromkeys(self.text(part) for part in parts)
        return {text: number for number, text in enumerate(texts)}

    def text(self, part: Path) -> str:
        """Return the text of an episode's task; LeRobot asks for one."""
        return read_about(part)["text"] or self.contents.task or "task"

    def write_side(self, parts: Sequence[Path], target: Path) -> None:
        """Write what LeRobot has no place for."""
        write_json(target / SIDECAR, {**head(self.contents), "episodes": [read_about(part) for part in parts]})

    def robot(self) -> str:
        """Return the name of the robot; LeRobot takes any text."""
        return self.contents.task or "unknown"


def losses(contents: Contents, options: Options) -> list[str]:
    """Return what LeRobot cannot hold."""
    found = lost_extras(contents, frozenset(KEPT))
    if options.images == "video":
        found += [
            f"the images of '{column.name}' are coded with loss (H.264); --images png keeps them exact"
            for column in contents.columns
            if column.image
        ]
    if contents.rate_hz is not None and contents.rate_hz != round(contents.rate_hz):
        found.append(f"the rate of {contents.rate_hz:g} rows a second is not whole, and LeRobot refuses it")
    flat = [column.name for column in contents.columns if not column.image and len(column.shape) > 1]
    if flat:
        found.append(f"the shape of {', '.join(flat)}: LeRobot's policies take flat vectors")
    return found


def describe(plan: ColumnPlan) -> dict[str, Any]:
    """Return the features as ``info.json`` lists them."""
    return {key: dict(feature) for key, feature in plan.features.items()}

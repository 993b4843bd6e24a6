"""Writes episodes of a LeRobot data set as parts, with their statistics."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.formats.base import EXTRAS as KEPT
from bid_ros.formats.base import Contents, DataEpisode, Options, lost_extras
from bid_ros.formats.files import head, read_about, read_json, to_key, write_json
from bid_ros.formats.lerobot.layout import CHUNK, NO_TEXT, SIDECAR, plan_of
from bid_ros.formats.lerobot.tables import arrow, part_arrays, part_table, schema_of
from bid_ros.formats.lerobot.video import av, encode

QUANTILES: Final = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
LEVELS: Final = np.arange(256) / 255.0

Stats = dict[str, list[Any]]


def vector_stats(values: NDArray[Any]) -> Stats:
    """Return min, max, mean, std, count and quantiles of ``(T,)`` or ``(T, n)``, each with n values."""
    table = values.reshape(len(values), -1).astype(np.float64)
    found = {
        "min": table.min(axis=0),
        "max": table.max(axis=0),
        "mean": table.mean(axis=0),
        "std": table.std(axis=0),
        "count": np.array([len(table)]),
    }
    quantiles = np.quantile(table, list(QUANTILES.values()), axis=0)
    return {name: each.tolist() for name, each in (found | dict(zip(QUANTILES, quantiles, strict=True))).items()}


def image_stats(images: NDArray[np.uint8]) -> Stats:
    """Return the same of ``(T, height, width, 3)`` for each colour, of values from 0 to 1, in the shape (3, 1, 1)."""
    counts = np.stack([np.bincount(images[..., colour].reshape(-1), minlength=256) for colour in range(3)])
    total = counts.sum(axis=1)
    mean = counts @ LEVELS / total
    present = counts > 0
    found = {
        "min": LEVELS[present.argmax(axis=1)],
        "max": LEVELS[255 - present[:, ::-1].argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(counts @ LEVELS**2 / total - mean**2, 0)),
    }
    share = np.cumsum(counts, axis=1) / total[:, None]
    for name, wanted in QUANTILES.items():
        found[name] = LEVELS[(share >= wanted).argmax(axis=1)]
    shaped = {name: each.reshape(3, 1, 1).tolist() for name, each in found.items()}
    return {**{name: shaped[name] for name in ("min", "max", "mean", "std")}, "count": [len(images)], **shaped}


def joined(parts: Sequence[Mapping[str, Any]]) -> Stats:
    """Return the statistics of several episodes together; quantiles are their mean, as in LeRobot."""
    counts = np.array([part["count"][0] for part in parts], dtype=np.float64)
    share = counts / counts.sum()
    stacked = {name: np.array([part[name] for part in parts], dtype=np.float64) for name in parts[0]}

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.tensordot(share, values, axes=1)
        return found

    centre = mean(stacked["mean"])
    found = {
        "min": stacked["min"].min(axis=0),
        "max": stacked["max"].max(axis=0),
        "mean": centre,
        "std": np.sqrt(mean(stacked["std"] ** 2 + (stacked["mean"] - centre) ** 2)),
        "count": np.array([int(counts.sum())]),
        **{name: mean(stacked[name]) for name in parts[0] if name in QUANTILES},
    }
    return {name: each.tolist() for name, each in found.items()}


TABLE: Final = "rows.parquet"
STATS: Final = "stats.json"


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
                encode(episode.observations[name], folder / f"{to_key(key)}.mp4", self.plan.fps, self._quality)
        (folder / STATS).write_text(json.dumps(stats))

    def stats(self, part: Path, episode: int, first: int, tasks: NDArray[np.int64]) -> dict[str, Stats]:
        """Return the statistics of an episode by feature, with those of the columns that number it."""
        found: dict[str, Stats] = read_json(part / STATS)
        rows = read_about(part)["rows"]
        ramp = {name: list(values) for name, values in found["frame_index"].items()}
        found["index"] = {
            name: [value + first for value in values] if name not in ("std", "count") else values
            for name, values in ramp.items()
        }
        constant = {key: [0.0] if key == "std" else [float(episode)] for key in ramp}
        found["episode_index"] = {**constant, "count": [rows]}
        found["task_index"] = vector_stats(tasks)
        return {key: found[key] for key in self.plan.features}

    def tasks(self, parts: Sequence[Path]) -> dict[str, int]:
        """Return the number of each task's text, in the order in which the episodes bring them."""
        texts = dict.fromkeys(text for part in parts for _, text in self.texts(part))
        return {text: number for number, text in enumerate(texts)}

    def texts(self, part: Path) -> list[tuple[int, str]]:
        """Return (first row, text) of each run of rows with the same task; LeRobot asks for a text."""
        about, unsaid = read_about(part), self.contents.task or NO_TEXT
        return [(first, text or unsaid) for first, text in about["texts"] or [(0, about["text"])]]

    def unique_texts(self, part: Path) -> list[str]:
        """Return the different texts of an episode in order."""
        return list(dict.fromkeys(text for _, text in self.texts(part)))

    def row_tasks(self, part: Path, tasks: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the number of each row's task ``(T,)``."""
        runs = self.texts(part)
        ends = [*(first for first, _ in runs[1:]), read_about(part)["rows"]]
        return np.repeat([tasks[text] for _, text in runs], np.diff([0, *ends])).astype(np.int64)

    def write_side(self, parts: Sequence[Path], target: Path) -> None:
        """Write what LeRobot has no place for."""
        write_json(target / SIDECAR, {**head(self.contents), "episodes": [read_about(part) for part in parts]})

    def info(self, episodes: int, rows: int, tasks: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``meta/info.json`` in LeRobot's order, with what is a version's ``own``. A robot may have any name."""
        return {
            "codebase_version": self.version,
            "fps": self.plan.fps,
            "features": dict(self.plan.features),
            "total_episodes": episodes,
            "total_frames": rows,
            "total_tasks": tasks,
            "chunks_size": CHUNK,
            **own,
            "robot_type": self.contents.task or "unknown",
            "splits": {"train": f"0:{episodes}"},
        }


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

"""What the page shows of one episode: pictures, what was done, and what each decoder chose, small enough to send."""

import base64
import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from bid_ros.cameras.depth import shown
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.formats.base import DataEpisode

FRAMES: Final = 40  # decisions of an episode whose pictures and chunks are kept, evenly over it
POINTS: Final = 400  # decisions in the plots over the episode
SIDE: Final = 128  # longest side of a picture, px
COLUMNS: Final = 8  # pictures in a row of the sheet
QUALITY: Final = 70
GRID: Final = 1000  # steps of a coordinate over the longest axis
SERIES: Final = ("error", "best", "coherence", "forward")


class Trace:
    """Takes the decisions of one episode.

    Args:
        episode: the episode.
        task: its task.
    """

    def __init__(self, episode: DataEpisode, task: Task) -> None:
        self._episode, self._task = episode, task
        self._shown = np.unique(np.linspace(0, episode.rows - 1, min(episode.rows, FRAMES)).round().astype(int))
        self._every = -(-episode.rows // POINTS)
        self._axes, self._planes = _planes(task)
        self._choices: dict[str, list[Array]] = {}
        self._samples: list[Array] = []
        self._series: dict[str, dict[str, list[float | None]]] = {name: {} for name in SERIES}

    def add(self, row: int, decoder: str, chosen: Array, found: dict[str, float]) -> None:
        """Take the choice ``(K, D)`` of a decoder at a row, and its measures. Rows come in their order."""
        if row % self._every == 0:
            for name, series in self._series.items():
                value = found.get(name)
                series.setdefault(decoder, []).append(None if value is None else round(value, 3))
        if row in self._shown:
            self._choices.setdefault(decoder, []).append(chosen[:, self._axes])

    def add_samples(self, row: int, samples: Array) -> None:
        """Take the samples ``(N, K, D)`` of the policy at a row."""
        if row in self._shown:
            self._samples.append(samples[:, :, self._axes])

    def page(self) -> dict[str, Any]:
        """Return everything as plain values: coordinates are whole numbers of a grid over the episode's extent."""
        demonstrated = np.asarray(self._episode.actions, dtype=np.float64)[:, self._axes]
        points = self._points()
        seen = [demonstrated, *self._samples, *(item for items in self._choices.values() for item in items), *points]
        flat = np.concatenate([item.reshape(-1, len(self._axes)) for item in seen])
        low, step = flat.min(axis=0), max(float(np.ptp(flat, axis=0).max()), 1e-9) / GRID

        def gridded(values: Array) -> Any:
            return np.rint((values - low) / step).astype(int).tolist()

        return {
            "label": self._episode.label,
            "seed": int(self._episode.seed),
            "success": self._episode.success,
            "rows": self._episode.rows,
            "dt": self._task.dt_ns / 1e9,
            "every": self._every,
            "shown": self._shown.tolist(),
            "planes": self._planes,
            "extent": gridded(flat.max(axis=0)),
            "demonstrated": gridded(demonstrated),
            "choices": {name: [gridded(item) for item in items] for name, items in self._choices.items()},
            "samples": [gridded(item) for item in self._samples],
            "points": [gridded(item) for item in points],
            "series": self._series,
            **self._sheet(),
        }

    def _points(self) -> list[Array]:
        """Return the points ``(P, 2)`` that are observed in the plane of the actions, at each shown row."""
        values = [self._episode.observations[item.name] for item in self._task.vectors if item.kind == "points"]
        if self._task.action[0].kind != "points" or not values:
            return []
        return [
            np.concatenate([np.asarray(item[row], dtype=np.float64).reshape(-1, 2) for item in values])
            for row in self._shown
        ]

    def _sheet(self) -> dict[str, Any]:
        """Return the pictures of all cameras at the shown rows as one JPEG, tile by tile."""
        cameras = [self._episode.observations[camera.name] for camera in self._task.cameras]
        if not cameras:
            return {"sheet": "", "tile": [0, 0], "columns": COLUMNS}
        tiles = [np.concatenate([_small(images[row]) for images in cameras], axis=1) for row in self._shown]
        height, width = tiles[0].shape[:2]
        sheet = np.zeros((-(-len(tiles) // COLUMNS) * height, COLUMNS * width, 3), np.uint8)
        for number, tile in enumerate(tiles):
            top, left = number // COLUMNS * height, number % COLUMNS * width
            sheet[top : top + height, left : left + width] = tile
        buffer = io.BytesIO()
        PillowImage.fromarray(sheet).save(buffer, "JPEG", quality=QUALITY, optimize=True)
        return {
            "sheet": base64.b64encode(buffer.getvalue()).decode(),
            "tile": [width, height],
            "columns": COLUMNS,
        }


def _small(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a picture whose height is at most :data:`SIDE`, so that cameras of any size stand side by side."""
    height, width = image.shape[:2]
    size = round(width * SIDE / height), SIDE
    picture = PillowImage.fromarray(shown(image))
    return np.asarray(picture if (width, height) == size else picture.resize(size, PillowImage.Resampling.LANCZOS))


def _planes(task: Task) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the columns of the action that are drawn, and the planes: two of these columns, right and up, and names.

    A tool is seen from above and from the side. Of other actions the first two values are drawn, points as in an image.
    """
    position = task.columns("position")
    if position is not None:
        axes = list(range(position.start, position.stop))
        return axes, [
            {"name": "from above: x right, y up", "axes": [0, 1], "down": False},
            {"name": "from the side: x right, z up", "axes": [0, 2], "down": False},
        ]
    first = task.action[0]
    name = f"{first.name}: its first value right, its second up"
    if first.kind == "points":
        name = f"{first.name}: x right, y down"
    axes = [0, min(1, task.action_dim - 1)]
    return axes, [{"name": name, "axes": [0, 1], "down": first.kind == "points"}]

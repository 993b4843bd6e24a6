"""Parquet tables of a LeRobotDataset, as the package ``datasets`` reads them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.image import unpacked
from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra
from bid_ros.formats.base import NUMBERS, Column, DataEpisode
from bid_ros.formats.files import STAMP, readable
from bid_ros.formats.lerobot.layout import ColumnPlan

LIST_OF_VERSION: Final = {"v2.1": "Sequence", "v3.0": "List"}  # how the package datasets names a list


def arrow() -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet. Raises RecordingError if the extra ``data`` is not installed."""
    with extra("data", "a LeRobot data set", RecordingError):
        import pyarrow
        import pyarrow.parquet as parquet

        return pyarrow, parquet


def schema_of(plan: ColumnPlan, version: str) -> Any:
    """Return the schema of the rows, with the features as the package ``datasets`` writes them."""
    pyarrow, _ = arrow()
    fields: list[Any] = []
    features: dict[str, Any] = {}
    for key, feature in plan.features.items():
        if feature["dtype"] == "video":
            continue
        if feature["dtype"] == "image":
            kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
            features[key] = {"_type": "Image"}
        else:
            kind, size = pyarrow.from_numpy_dtype(np.dtype(feature["dtype"])), feature["shape"][0]
            features[key] = {"dtype": feature["dtype"], "_type": "Value"}
            if size > 1:
                kind = pyarrow.list_(kind, size)
                features[key] = {"feature": features[key], "length": size, "_type": LIST_OF_VERSION[version]}
        fields.append(pyarrow.field(key, kind))
    return pyarrow.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


def part_arrays(plan: ColumnPlan, episode: DataEpisode) -> dict[str, NDArray[Any]]:
    """Return the numbers of an episode by feature, without those that depend on other episodes."""
    rows = episode.rows
    arrays = {
        key: np.concatenate([episode.observations[name].reshape(rows, -1) for name in names], axis=1)
        for key, names in plan.vectors.items()
    }
    arrays["action"] = episode.actions.reshape(rows, -1)
    if STAMP in plan.features:
        arrays[STAMP] = episode.stamps_ns.reshape(rows, 1)
    arrays["timestamp"] = (np.arange(rows) / plan.fps).reshape(rows, 1)
    arrays["frame_index"] = np.arange(rows).reshape(rows, 1)
    return {key: each.astype(plan.features[key]["dtype"]) for key, each in arrays.items()}


def part_table(plan: ColumnPlan, arrays: Mapping[str, NDArray[Any]], episode: DataEpisode, schema: Any) -> Any:
    """Return the rows of one episode as a table; the columns that depend on other episodes are 0."""
    pyarrow, _ = arrow()
    zeros = np.zeros((episode.rows, 1), np.int64)
    pictures = {} if plan.video else {key: episode.observations[name] for name, key in plan.images.items()}
    columns = []
    for field in schema:
        if field.name in pictures:
            coded = [
                {"bytes": to_png(image), "path": f"frame-{at:06d}.png"} for at, image in enumerate(pictures[field.name])
            ]
            columns.append(pyarrow.array(coded, type=field.type))
        else:
            columns.append(_column(pyarrow, np.ascontiguousarray(arrays.get(field.name, zeros)), field.type))
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _column(pyarrow: Any, values: NDArray[Any], kind: Any) -> Any:
    flat = pyarrow.array(values.reshape(-1))
    return flat if values.shape[1] == 1 else pyarrow.FixedSizeListArray.from_arrays(flat, type=kind)


def numbered(table: Any, episode: int, first: int, tasks: NDArray[np.int64]) -> Any:
    """Return the table of an episode with its number, the number of its first row and of each row's task."""
    pyarrow, _ = arrow()
    rows = table.num_rows
    found = {
        "episode_index": np.full(rows, episode),
        "index": np.arange(first, first + rows),
        "task_index": tasks,
    }
    for name, values in found.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pyarrow.array(values.astype(np.int64)))
    return table


class Rows:
    """Rows of a Parquet file, read by groups; the last groups read stay in memory.

    Args:
        path: the file.

    Raises:
        RecordingError: missing or damaged.
    """

    def __init__(self, path: Path) -> None:
        _, parquet = arrow()
        self.path = path
        with readable(path):
            self._file = parquet.ParquetFile(path)
            sizes = [self._file.metadata.row_group(at).num_rows for at in range(self._file.metadata.num_row_groups)]
            self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._held: tuple[tuple[Any, ...], Any] | None = None

    @property
    def count(self) -> int:
        """Number of rows in the file."""
        return int(self._starts[-1])

    def read(self, first: int, rows: int, names: Sequence[str]) -> Any:
        """Return a table of ``rows`` rows from number ``first`` of the file on. Raises RecordingError."""
        end = first + rows
        if end > self.count:
            raise RecordingError(f"{self.path} has {self.count} rows; the data set says {end} or more")
        with readable(self.path):
            missing = [name for name in names if name not in self._file.schema_arrow.names]
            if missing:
                raise RecordingError(f"{self.path} lacks the column {missing[0]}")
            low = int(np.searchsorted(self._starts, first, side="right")) - 1
            high = int(np.searchsorted(self._starts, end, side="left"))
            if self._held is None or self._held[0] != (low, high, *names):
                table = self._file.read_row_groups(list(range(low, high)), columns=list(names))
                self._held = ((low, high, *names), table)
            return self._held[1].slice(first - int(self._starts[low]), rows)


def numbers(table: Any, column: Column, path: Path) -> NDArray[Any]:
    """Return a numeric column of a table as ``(T, *shape)``.

    Raises:
        RecordingError: it has another shape or lacks values, or the type that the data set says cannot hold them.
    """
    with readable(path):
        flat = _flattened(table.column(column.key).combine_chunks(), f"{path}: '{column.key}'")
    if len(flat) != table.num_rows * column.size:
        raise RecordingError(
            f"{path}: '{column.key}' has {len(flat)} values in {table.num_rows} rows; valid is {column.size} a row"
        )
    # Booleans and short rows come as other types than the features say.
    found: NDArray[Any] = flat.astype(column.dtype)
    if found.dtype.kind in "iub" and not np.array_equal(found, flat):
        at = int((found != flat).argmax())
        raise RecordingError(f"{path}: '{column.key}' has {flat[at]}, which is no {column.dtype}, as info.json says")
    return found.reshape(table.num_rows, *column.shape)


def _flattened(values: Any, said: str) -> NDArray[Any]:
    """Return the numbers of an array of Arrow, of rows of one length; ``said`` begins the sentence of an error."""
    from pyarrow.compute import list_value_length

    while not values.null_count and hasattr(values, "flatten") and hasattr(values.type, "value_type"):
        sizes = list_value_length(values).unique().to_pylist()
        if len(sizes) > 1:
            raise RecordingError(
                f"{said} has rows of {' and '.join(map(str, sorted(sizes)[:3]))} values; valid is one number of them"
            )
        values = values.flatten()
    if values.null_count:
        raise RecordingError(f"{said} lacks {values.null_count} values")
    flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if flat.dtype.kind not in NUMBERS:
        raise RecordingError(f"{said} is {values.type}; valid are numbers")
    return flat


def pictures(table: Any, column: Column, path: Path) -> NDArray[np.uint8]:
    """Return an image column of a table as ``(T, height, width, 3)`` rgb. Raises RecordingError."""
    found = np.empty((table.num_rows, *column.shape), np.uint8)
    for at, item in enumerate(table.column(column.key)):
        held = item.as_py() or {}
        content = held.get("bytes") if isinstance(held, dict) else None
        if not content:
            raise RecordingError(f"{path}: '{column.key}' has no picture in row {at}")
        image = unpacked(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
        if image is not None and image.dtype != np.uint8:
            bits = 8 * image.dtype.itemsize
            raise RecordingError(
                f"{path}: picture {at} of '{column.key}' has {bits} bits a channel, as distances have; valid is 8"
            )
        if image is None or image.shape != column.shape:
            shape = "damaged" if image is None else image.shape
            raise RecordingError(f"{path}: picture {at} of '{column.key}' is {shape}; valid is {column.shape}")
        found[at] = image[..., ::-1]
    return found


def to_png(image: NDArray[np.uint8]) -> bytes:
    """Return an rgb image as PNG."""
    return bytes(cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))[1])

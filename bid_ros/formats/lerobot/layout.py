"""Features of a LeRobotDataset: what ``meta/info.json`` says of them, and which column of ours each one holds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import ACTIONS, NO_ACTION, Column, Contents, Options, required_rate
from bid_ros.formats.files import STAMP, read_json, readable

INFO: Final = "meta/info.json"
SIDECAR: Final = "meta/bid_ros.json"
ACTION: Final = "action"
STATE: Final = "observation.state"
OBSERVATION: Final = "observation."
IMAGES: Final = "observation.images."
NUMBERS: Final = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool")
CHUNK: Final = 1000  # files in one folder
GROUP: Final = 2  # frames from one whole picture of a video to the next
NO_TEXT: Final = "task"  # of an episode without a text, in a data set without a task: LeRobot asks for one
DEFAULTS: Final = {
    "timestamp": "float32",
    **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """How the columns of a data set become features.

    Attributes:
        fps: rows per second, whole.
        images: key of each image column by its name, in order.
        vectors: names of the columns that each numeric feature joins, by its key.
        features: the features as in ``info.json``, the default ones at the end.
        video: images are videos; if not they are PNG files in the tables.
    """

    fps: int
    images: Mapping[str, str]
    vectors: Mapping[str, tuple[str, ...]]
    features: Mapping[str, dict[str, Any]]
    video: bool


def plan_of(contents: Contents, options: Options) -> ColumnPlan:
    """Return how ``contents`` become features.

    Vectors become ``observation.state``, one after the other, with the name of each value; policies of LeRobot read
    that one. If something is called ``state`` already, each vector is a feature of its own.

    Raises:
        RecordingError: the rate is unknown or not whole, or H.264 cannot hold the size of an image.
    """
    rate = required_rate(contents, "LeRobot")
    if rate != round(rate):
        raise RecordingError(f"LeRobot holds whole rates only; the data set has {rate:g} rows a second")
    images = {column.name: IMAGES + column.name for column in contents.columns if column.image}
    video = options.images == "video"
    for column in contents.columns:
        if column.image and column.shape[2] == 1:
            raise RecordingError(
                f"image '{column.name}' is of distances in 16 bits; LeRobot's pictures have three colours of 8 bits: "
                "valid for it are npz, zarr, robomimic and bag, or a task without it"
            )
        if column.image and column.dtype != "uint8":
            raise RecordingError(
                f"image '{column.name}' is {column.dtype}; valid in a LeRobot data set is uint8; name the task, whose "
                "images are"
            )
        if column.image and video and (column.shape[0] % 2 or column.shape[1] % 2):
            raise RecordingError(
                f"image '{column.name}' of {column.shape[0]} x {column.shape[1]} pixels cannot be a video; valid are "
                "even sizes, or --images png"
            )
    vectors, features = _vectors(contents.columns)
    features[ACTION] = _numeric([contents.action], contents.action.names)
    for name, key in images.items():
        features[key] = _image(next(column for column in contents.columns if column.name == name), video, round(rate))
    if "stamps" in contents.extras:
        features[STAMP] = {"dtype": "int64", "shape": [1], "names": None}
    _check_keys([*vectors, *images.values()])
    for key, dtype in DEFAULTS.items():
        features[key] = {"dtype": dtype, "shape": [1], "names": None}
    return ColumnPlan(round(rate), images, vectors, features, video)


def _check_keys(keys: Sequence[str]) -> None:
    """Raise RecordingError for a key that stands for two columns, or is no path: videos have folders of their keys."""
    for key in keys:
        if keys.count(key) > 1 or not {"", ".", ".."}.isdisjoint(key.split("/")):
            raise RecordingError(f"LeRobot cannot hold the feature '{key}'; valid is a path that one column has")


def _vectors(columns: Sequence[Column]) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, Any]]]:
    taken = any(column.name == "state" for column in columns)
    columns = [column for column in columns if not column.image]
    packed = [column for column in columns if np.dtype(column.dtype).kind == "f" and not taken]
    vectors: dict[str, tuple[str, ...]] = {}
    features: dict[str, dict[str, Any]] = {}
    if packed:
        vectors[STATE] = tuple(column.name for column in packed)
        features[STATE] = _numeric(packed, [name for column in packed for name in _value_names(column)])
    for column in columns:
        if column not in packed:
            vectors[OBSERVATION + column.name] = (column.name,)
            features[OBSERVATION + column.name] = _numeric([column], column.names)
    return vectors, features


def _value_names(column: Column) -> list[str]:
    if column.size == 1 and not column.names:
        return [column.name]
    names = column.names or tuple(map(str, range(column.size)))
    own = (f"{column.name}.", column.name)
    return [name if name.startswith(own) else f"{column.name}.{name}" for name in names]


def _numeric(columns: Sequence[Column], names: Sequence[str]) -> dict[str, Any]:
    dtype = np.result_type(*(np.dtype(column.dtype) for column in columns)).name
    if dtype not in NUMBERS:
        raise RecordingError(f"'{columns[0].name}' is {dtype}; valid in a LeRobot data set are {', '.join(NUMBERS)}")
    size = sum(column.size for column in columns)
    return {"dtype": dtype, "shape": [size], "names": list(names) or None}


def _image(column: Column, video: bool, fps: int) -> dict[str, Any]:
    height, width, channels = column.shape
    feature: dict[str, Any] = {
        "dtype": "video" if video else "image",
        "shape": [height, width, channels],
        "names": ["height", "width", "channels"],
    }
    if video:
        feature["info"] = {
            "video.height": height,
            "video.width": width,
            "video.codec": "h264",
            "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False,
            "video.fps": fps,
            "video.channels": channels,
            "has_audio": False,
        }
    return feature


@dataclass(frozen=True)
class Layout:
    """What ``meta/info.json`` of a data set says.

    Attributes:
        root: folder of the data set.
        info: its content.
        columns: what was observed; the key of each is its feature.
        action: what was commanded.
        left: one sentence for each thing that is not read.
        notes: one sentence for each name that is not as the files say.
    """

    root: Path
    info: Mapping[str, Any]
    columns: tuple[Column, ...]
    action: Column
    left: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def fps(self) -> float:
        """Rows per second."""
        return float(self.info["fps"])

    def videos(self) -> list[Column]:
        """Return the columns whose images are in videos."""
        return [item for item in self.columns if self.info["features"][item.key]["dtype"] == "video"]

    def tabled(self) -> list[Column]:
        """Return the columns that are in the tables."""
        return [item for item in self.columns if self.info["features"][item.key]["dtype"] != "video"]


def version_of(root: Path) -> str:
    """Return the version that ``meta/info.json`` names; empty: it is no data set of LeRobot."""
    if not (root / INFO).is_file():
        return ""
    try:
        content = json.loads((root / INFO).read_text())
    except (OSError, ValueError):
        return "unknown"
    return str(content.get("codebase_version", "unknown")) if isinstance(content, dict) else "unknown"


def read_layout(root: Path, version: str) -> Layout:
    """Return what the data set at ``root`` says of itself.

    Raises:
        RecordingError: it is damaged, of another version, or lacks an action or an observation.
    """
    info = read_json(root / INFO)
    with readable(root / INFO):
        found = info["codebase_version"]
        if found != version:
            raise RecordingError(f"LeRobot data set {root} has version {found}; valid are v2.1 and v3.0")
        fps = float(info["fps"])
        if not 0 < fps < np.inf:
            raise RecordingError(f"LeRobot data set {root} has fps {fps:g}; valid is a positive number")
        features = dict(info["features"])
        commanded = next((key for key in ACTIONS if key in features), "")
        columns: list[Column] = []
        left = []
        # Keys of observations come first: another one of the same name gets a longer one.
        for key in sorted(features, key=lambda key: not key.startswith((OBSERVATION, "next."))):
            if key in DEFAULTS or key in (commanded, STAMP):
                continue
            reason = _unread(key, features[key])
            if reason:
                left.append(f"{key} is not read: {reason}")
            else:
                columns.append(_read_column(key, features[key]))
        named, notes = _told_apart(columns)
        action = replace(_read_column(commanded, features[commanded]), name=ACTION) if commanded else NO_ACTION
        held = (*named, action) if commanded else named
        unnamed = [_unnamed(column, features[column.key]) for column in held]
        return Layout(root, info, named, action, tuple(left), (*notes, *filter(None, unnamed)))


def _unread(key: str, feature: Mapping[str, Any]) -> str:
    if key.startswith("next."):
        return "it is no observation"
    told = {**(feature.get("info") or {}), **(feature.get("video_info") or {})}
    if told.get("is_depth_map") or told.get("video.is_depth_map"):
        return "it is a depth map"
    if feature["dtype"] not in (*NUMBERS, "image", "video"):
        return f"it is {feature['dtype']}"
    return ""


def _read_column(key: str, feature: Mapping[str, Any]) -> Column:
    shape = tuple(int(size) for size in feature["shape"])
    image = feature["dtype"] in ("image", "video")
    names = feature.get("names")
    if image and shape[0] in (1, 3) and len(shape) == 3 and shape[2] not in (1, 3):
        shape = (shape[1], shape[2], shape[0])  # some data sets name the channels first; the frames are the same
    if image and (len(shape) == 2 or shape[2] == 1):
        shape = (*shape[:2], 3)  # of a grey camera, read as rgb, as its live images are
    flat = () if image else tuple(_flat(names))
    if len(flat) != int(np.prod(shape)):
        flat = ()
    codec = str((feature.get("info") or {}).get("video.codec") or "video") if feature["dtype"] == "video" else ""
    name = key.removeprefix(IMAGES if image and key.startswith(IMAGES) else OBSERVATION)
    return Column(
        name, shape, "uint8" if image else feature["dtype"], image, flat, key, codec, not key.startswith(OBSERVATION)
    )


def _flat(names: Any) -> list[str]:
    """Return the names of values in order: a list, lists in a list, or lists by a word, as ``{"motors": [...]}``."""
    if isinstance(names, dict):
        names = list(names.values() if any(isinstance(each, list) for each in names.values()) else names)
    if isinstance(names, list | tuple):
        return [name for each in names for name in _flat(each)]
    return [] if names is None else [str(names)]


def _unnamed(column: Column, feature: Mapping[str, Any]) -> str:
    """Return a sentence if the names of values are not as many as these, and so not read."""
    found = [] if column.image else _flat(feature.get("names"))
    if not found or len(found) == column.size:
        return ""
    return f"{column.key} has {len(found)} names for {column.size} values, which are not read"


def _told_apart(columns: Sequence[Column]) -> tuple[tuple[Column, ...], list[str]]:
    """Return columns with different names: one that has the name of another keeps more of its key."""
    found: dict[str, Column] = {}
    notes = []
    taken = {ACTION: ACTION}
    for column in columns:
        if column.name in taken:
            longer = column.key.removeprefix(OBSERVATION) if column.image else column.key
            notes.append(f"{column.key} is called {longer}: {taken[column.name]} has the name {column.name}")
            column = replace(column, name=longer)
        found[column.name], taken[column.name] = column, column.key
    return tuple(found.values()), notes

"""The task file: what a policy sees and does, said once for live use, recording, replay and training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import yaml

from bid_ros.checks import check_range
from bid_ros.chunk import NANOSECONDS
from bid_ros.errors import TaskError
from bid_ros.limits import Limits

FeatureKind = Literal["image", "position", "rotation_6d", "gripper", "joints", "points"]
KINDS: Final = get_args(FeatureKind)
KIND_SIZES: Final = {"position": 3, "rotation_6d": 6, "gripper": 1, "joints": 7}
UNITS: Final = {"image": "rgb8", "position": "m", "rotation_6d": "1", "gripper": "m", "joints": "rad", "points": "px"}


@dataclass(frozen=True)
class Feature:
    """One observed or commanded quantity.

    Attributes:
        name: column group in data sets and chunks.
        kind: ``image`` (rgb8), ``position`` (m), ``rotation_6d``, ``gripper`` (opening width, m), ``joints`` (rad) or
            ``points`` (x and y of points in a plane, px; for benches without a robot).
        shape: ``(height, width, 3)`` of an image, else ``(size,)``; only ``points`` may have any even size.
        frame: frame of positions and rotations.
        rate_hz: rate at which a sensor is expected to deliver it (observations).
    """

    name: str
    kind: FeatureKind
    shape: tuple[int, ...]
    frame: str = "base"
    rate_hz: float = 10.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TaskError(f"feature '{self.name}' has kind '{self.kind}'; valid are {', '.join(KINDS)}")
        if self.kind == "image":
            if len(self.shape) != 3 or self.shape[2] != 3 or min(self.shape) < 1:
                raise TaskError(f"image '{self.name}' has shape {self.shape}; valid is (height, width, 3)")
        elif self.kind == "points":
            if len(self.shape) != 1 or self.shape[0] < 2 or self.shape[0] % 2:
                raise TaskError(f"points '{self.name}' have shape {self.shape}; valid is (2 n,), an even number")
        elif self.shape != (KIND_SIZES[self.kind],):
            expected = KIND_SIZES[self.kind]
            raise TaskError(
                f"feature '{self.name}' of kind '{self.kind}' has shape {self.shape}; valid is ({expected},)"
            )
        if not 0.1 <= self.rate_hz <= 1000:
            raise TaskError(f"feature '{self.name}' has rate_hz {self.rate_hz}; valid is 0.1 to 1000")

    @property
    def size(self) -> int:
        """Number of values of a vector feature (product of the shape)."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class Task:
    """A task: features, rates, horizons and limits. Build it with :func:`load_task`.

    Attributes:
        name: unique name; a policy bundle names the task it was made for.
        rate_hz: decisions per second, which is also the rate of the actions in a chunk.
        observation_steps: To, past steps a policy sees, spaced by one action period.
        horizon: H, rows of one prediction, of which the first ``observation_steps - 1`` lie in the past.
        base_frame: frame of every commanded position and rotation, and of every chunk.
        tool_frame: frame that is commanded.
        episode_timeout: s after which an episode counts as failed.
        start: empty, or ``tool_min`` and ``tool_max``: corners of the box of start positions of the tool, m.
    """

    name: str
    robot: str
    rate_hz: float
    observation_steps: int
    horizon: int
    observation: tuple[Feature, ...]
    action: tuple[Feature, ...]
    limits: Limits
    base_frame: str = "base"
    tool_frame: str = "tool"
    description: str = ""
    episode_timeout: float = 20.0
    start: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_range(f"task '{self.name}'", "rate_hz", self.rate_hz, 1, 100, TaskError)
        if self.observation_steps < 1:
            raise TaskError(f"task '{self.name}': observation_steps is {self.observation_steps}; valid is 1 or more")
        if self.horizon < self.observation_steps:
            raise TaskError(
                f"task '{self.name}': horizon is {self.horizon}; "
                f"valid is at least observation_steps {self.observation_steps}"
            )
        if not 0 < self.episode_timeout < math.inf:
            raise TaskError(f"task '{self.name}': episode_timeout is {self.episode_timeout}; valid is a positive time")
        for group, items in (("observation", self.observation), ("action", self.action)):
            names = [item.name for item in items]
            if not names or len(set(names)) != len(names):
                raise TaskError(f"task '{self.name}': {group} names {names}; valid is one or more different names")
        if any(item.kind == "image" for item in self.action):
            raise TaskError(
                f"task '{self.name}': an action has kind 'image'; "
                f"valid are {', '.join(kind for kind in KINDS if kind != 'image')}"
            )
        for item in self.action:
            if item.kind in ("position", "rotation_6d") and item.frame != self.base_frame:
                raise TaskError(
                    f"task '{self.name}': action '{item.name}' is in frame '{item.frame}'; "
                    f"valid is the base frame '{self.base_frame}'"
                )
        _check_start(self.start, self.limits)

    @property
    def dt_ns(self) -> int:
        """Time between two actions, integer nanoseconds."""
        return round(NANOSECONDS / self.rate_hz)

    @property
    def action_dim(self) -> int:
        """D, values per action."""
        return sum(item.size for item in self.action)

    @property
    def cameras(self) -> tuple[Feature, ...]:
        """The image observations, in order."""
        return tuple(item for item in self.observation if item.kind == "image")

    @property
    def vectors(self) -> tuple[Feature, ...]:
        """The observations that are not images, in order."""
        return tuple(item for item in self.observation if item.kind != "image")

    def columns(self, kind: FeatureKind) -> slice | None:
        """Columns of the first action feature of ``kind`` in a chunk, or None if the task has none."""
        start = 0
        for item in self.action:
            if item.kind == kind:
                return slice(start, start + item.size)
            start += item.size
        return None

    def signature(self) -> str:
        """Hash of everything a policy depends on: features, rate, horizon and observation steps, not limits."""
        relevant = {
            "name": self.name,
            "rate_hz": self.rate_hz,
            "observation_steps": self.observation_steps,
            "horizon": self.horizon,
            "observation": [asdict(item) for item in self.observation],
            "action": [asdict(item) for item in self.action],
        }
        return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()


def load_task(path: str | Path) -> Task:
    """Read a task file.

    Raises:
        TaskError: if the file is missing, is not YAML, has an unknown or missing field or an impossible value.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise TaskError(f"task file {path} does not exist") from error
    except OSError as error:
        raise TaskError(f"task file {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TaskError(f"task file {path} is not valid YAML: {' '.join(str(error).split())}") from error
    try:
        return parse_task(content)
    except TaskError as error:
        raise TaskError(f"task file {path}: {error}") from error


def parse_task(content: object) -> Task:
    """Build a task from the mapping that a task file holds; raises TaskError as :func:`load_task` does."""
    data = dict(_mapping(content, "the file"))
    data["observation"] = tuple(_feature(item, "observation") for item in _list(data.get("observation"), "observation"))
    data["action"] = tuple(_feature(item, "action") for item in _list(data.get("action"), "action"))
    data["limits"] = _build(Limits, _mapping(data.get("limits"), "limits"), "limits")
    return _build(Task, data, "task")


def _feature(item: object, group: str) -> Feature:
    data = dict(_mapping(item, group))
    kind = data.get("kind", "image")
    if kind not in KINDS:
        raise TaskError(f"{group} '{data.get('name')}' has kind {kind!r}; valid are {', '.join(KINDS)}")
    if "shape" not in data and kind in KIND_SIZES:
        data["shape"] = (KIND_SIZES[kind],)
    return _build(Feature, data, f"{group} '{data.get('name')}'")


Built = TypeVar("Built", Feature, Limits, Task)


def _build(cls: type[Built], data: Mapping[str, Any], where: str) -> Built:
    valid = [item.name for item in fields(cls)]
    unknown = [key for key in data if key not in valid]
    if unknown:
        raise TaskError(f"{where} has the unknown field '{unknown[0]}'; valid are {', '.join(valid)}")
    needed = [item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
    missing = [name for name in needed if name not in data]
    if missing:
        raise TaskError(f"{where} lacks the field '{missing[0]}'; needed are {', '.join(needed)}")
    for key, value in data.items():
        _check_type(key, value, where)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return cls(**values)


TEXTS: Final = {"name", "robot", "kind", "frame", "base_frame", "tool_frame", "description"}
WHOLE_NUMBERS: Final = {"observation_steps", "horizon"}
GROUPS: Final = {"observation", "action", "limits"}


def _check_type(key: str, value: object, where: str) -> None:
    """Raise TaskError if a field holds another type than its values have."""
    if key in GROUPS:
        return
    if key in TEXTS:
        good, valid = isinstance(value, str), "a text"
    elif key == "start":
        good, valid = isinstance(value, dict), "a mapping of fields"
    elif key == "shape":
        good, valid = isinstance(value, list | tuple) and all(map(_is_whole, value)), "a list of whole numbers"
    elif key in ("workspace_min", "workspace_max"):
        good, valid = isinstance(value, list) and all(map(_is_number, value)), "a list of three numbers"
    elif key in WHOLE_NUMBERS:
        good, valid = _is_whole(value), "a whole number"
    else:
        good, valid = _is_number(value), "a number"
    if not good:
        raise TaskError(f"{where}: {key} is {value!r}; valid is {valid}")


def _check_start(start: Mapping[str, Any], limits: Limits) -> None:
    """Raise TaskError unless ``start`` is empty or a box inside the workspace."""
    if not start:
        return
    if set(start) != {"tool_min", "tool_max"}:
        raise TaskError(f"start has the fields {', '.join(map(str, start))}; valid are tool_min, tool_max")
    for name, corner in start.items():
        if not (isinstance(corner, list | tuple) and len(corner) == 3 and all(map(_is_number, corner))):
            raise TaskError(f"start: {name} is {corner!r}; valid are three numbers x, y, z")
    low, high = start["tool_min"], start["tool_max"]
    for index, axis in enumerate("xyz"):
        inner, outer = limits.workspace_min[index], limits.workspace_max[index]
        if not inner <= low[index] <= high[index] <= outer:
            raise TaskError(
                f"start: {axis} runs from {low[index]} to {high[index]}; "
                f"valid is min <= max inside the workspace {inner} to {outer}"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TaskError(f"{where} is {type(value).__name__}; valid is a mapping of fields")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise TaskError(f"{where} is {type(value).__name__}; valid is a list of features")
    return value

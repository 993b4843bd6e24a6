"""The task file: observations, actions and limits of a task, for live use, recording, replay and training."""

import hashlib
import json
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field

from bid_ros.core.bag_mapping import NEXT, BagTopics
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.data_keys import DataKeys, split_key
from bid_ros.core.errors import TaskError
from bid_ros.core.feature import KINDS, SOURCE, Feature, FeatureKind
from bid_ros.core.limits import Limits
from bid_ros.core.objects import SceneObject, SuccessRule, check_objects
from bid_ros.core.settings import AS_WRITTEN, Positive, Vector3, load_settings, parse_settings, settings
from bid_ros.core.shapes import ToolPart, check_free, check_held, check_names
from bid_ros.core.units import PERCENT, conversion

NO_ROBOT = "none"
"""The robot of a task that is trained and evaluated on recorded data alone."""


@settings(error=TaskError)
class Start:
    """Box of the start positions of the tool.

    Attributes:
        tool_min, tool_max: corners of the box, m, in the task's frame.
    """

    tool_min: Vector3
    tool_max: Vector3


@settings(error=TaskError)
class Task:
    """A task: features, rates, horizons and limits. Build it with :func:`load_task`.

    Attributes:
        name: unique name. A policy bundle names the task it was made for.
        robot: name of the robot. An unknown name lists the valid ones. ``none``: the task is of recorded data alone;
            nothing moves for it.
        kind: kind of the task, which provides its twin, score, rehearsal and scripted demonstrations. The default
            ``table`` is a table with the ``objects`` of this file. Without these it is empty, and a person judges.
        rate_hz: decisions per second, which is also the rate of the actions in a chunk.
        observation_steps: To, number of observed steps, one action period apart, the present one included.
        horizon: H, rows of one prediction. The first ``observation_steps - 1`` lie in the past.
        observation: what the policy sees.
        action: what it commands, in the order of the columns.
        limits: limits that every chunk must keep.
        base_frame: frame of every commanded position and rotation, and of every chunk.
        tool_frame: frame that is commanded.
        description: the task in words, for people and for policies that read a text.
        episode_timeout: s after which an episode counts as failed.
        start: box of the tool at the start of an episode. None: no episodes are started.
        tool_shape: spheres and capsules that move with the tool: fingers, a held object, a camera's mount. Nothing of
            them may come into a place of ``limits: keep_out``. A held object counts while the gripper holds something.
        data: where data sets of other formats hold the features. None: they have the names of the features.
        objects: what lies on the table of the twin, of a task of the kind ``table``.
        success: rules that judge an episode in the twin: all must hold. None: a person judges.
    """

    name: str
    robot: str
    rate_hz: Annotated[float, Field(ge=1, le=100), AS_WRITTEN]
    observation_steps: Annotated[int, Field(ge=1)]
    horizon: int
    observation: Annotated[tuple[Feature, ...], Field(min_length=1)]
    action: Annotated[tuple[Feature, ...], Field(min_length=1)]
    limits: Limits
    base_frame: str = "base"
    tool_frame: str = "tool"
    kind: str = "table"
    description: str = ""
    episode_timeout: Positive = 20.0
    start: Start | None = None
    tool_shape: tuple[ToolPart, ...] = ()
    data: DataKeys | None = None
    objects: tuple[SceneObject, ...] = ()
    success: tuple[SuccessRule, ...] = ()

    def __post_init__(self) -> None:
        if self.horizon < self.observation_steps:
            raise TaskError(f"horizon is {self.horizon}; valid is at least observation_steps {self.observation_steps}")
        for group, items in (("observation", self.observation), ("action", self.action)):
            names = [item.name for item in items]
            if len(set(names)) != len(names):
                raise TaskError(f"{group} names {', '.join(names)}; valid are different names")
        for item in self.action:
            if item.kind in ("image", "vector"):
                valid = ", ".join(kind for kind in KINDS if kind not in ("image", "vector"))
                raise TaskError(f"action '{item.name}' has kind '{item.kind}'; valid are {valid}")
            if item.kind in ("position", "rotation_6d") and item.frame != self.base_frame:
                raise TaskError(
                    f"action '{item.name}' is in frame '{item.frame}'; valid is the base frame '{self.base_frame}'"
                )
        if self.start is not None:
            _check_start(self.start, self.limits)
        _check_shapes(self)
        check_objects(self.objects, self.success, self.limits.workspace_min, self.limits.workspace_max, self.kind)
        if self.data is not None:
            _check_data(self.data, self)

    @property
    def dt_ns(self) -> int:
        """Time between two actions, integer nanoseconds."""
        return round(NANOSECONDS / self.rate_hz)

    @property
    def chunk_rows(self) -> int:
        """Rows of a prediction from the current step on: those that can be executed."""
        return self.horizon - self.observation_steps + 1

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
        """Return the columns of the first action feature of ``kind`` in a chunk. None: the task has none."""
        return next((columns for item, columns in self.action_columns if item.kind == kind), None)

    @property
    def action_columns(self) -> list[tuple[Feature, slice]]:
        """Each commanded feature, and its columns in a chunk."""
        ends = accumulate(item.size for item in self.action)
        return [(item, slice(end - item.size, end)) for item, end in zip(self.action, ends, strict=True)]

    @property
    def recorded_names(self) -> dict[str, str]:
        """Recorded names of topics in bags of another recorder, by topic."""
        return {} if self.data is None else dict(self.data.topics.names)

    def with_frame_prefix(self, prefix: str) -> Self:
        """Return the task with ``prefix`` before the name of every frame.

        It has another signature. So compare bundles and data sets with the task itself.
        """
        return replace(
            self,
            base_frame=prefix + self.base_frame,
            tool_frame=prefix + self.tool_frame,
            observation=tuple(replace(item, frame=prefix + item.frame) for item in self.observation),
            action=tuple(replace(item, frame=prefix + item.frame) for item in self.action),
        )

    def signature(self) -> str:
        """Return a hash of all that a policy depends on: name, features, rate, horizon, observation steps."""
        relevant = {
            "name": self.name,
            "rate_hz": self.rate_hz,
            "observation_steps": self.observation_steps,
            "horizon": self.horizon,
            "observation": [_signed(item) for item in self.observation],
            "action": [_signed(item) for item in self.action],
        }
        if percent := self._in_percent():
            relevant["percent"] = percent  # no arm may take what was learnt of it for angles
        return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()

    def _in_percent(self) -> list[str]:
        """Return the names of joints that are percent of their range."""
        units = {} if self.data is None else self.data.unit
        joints = {item.name for item in (*self.observation, *self.action) if item.kind == "joints"}
        return sorted(name for name in joints if units.get(name) == PERCENT)


def load_task(path: str | Path) -> Task:
    """Read a task file.

    Raises:
        TaskError: the file is missing or not YAML, or a field is unknown, missing or impossible.
    """
    task = load_settings(Task, path, "task file")
    if not any(item.mesh for item in task.objects):
        return task
    return replace(task, objects=tuple(item.beside(Path(path).parent) for item in task.objects))


def parse_task(content: object) -> Task:
    """Build a task from the content of a task file. Raises TaskError as :func:`load_task`."""
    return parse_settings(Task, content, "task")


def _check_data(data: DataKeys, task: Task) -> None:
    """Raise TaskError if a key or unit is of no feature of the task, or has no valid form."""
    for group, features in (("observation", task.observation), ("action", task.action)):
        valid = [item.name for item in features]
        for name, key in getattr(data, group).items():
            if name not in valid:
                raise TaskError(f"data: {group} names '{name}', which the task lacks; valid are {', '.join(valid)}")
            split_key(key)
    _check_places(data.topics, task)
    kinds = {item.name: item.kind for item in (*task.observation, *task.action)}
    for name, unit in data.unit.items():
        if name not in kinds:
            raise TaskError(f"data: unit names '{name}', which the task lacks; valid are {', '.join(kinds)}")
        conversion(unit, kinds[name], name, task.limits)
        if unit == PERCENT and kinds[name] == "joints" and task.robot != NO_ROBOT:
            angles = f"valid for joints are rad, deg; percent of their range, which is no angle, with robot: {NO_ROBOT}"
            raise TaskError(f"unit of '{name}' is 'percent'; {angles}")


def _check_places(topics: BagTopics, task: Task) -> None:
    """Raise TaskError unless a mapping of bags names every feature of the task, and nothing else."""
    for group, features in (("observation", task.observation), ("action", task.action)) if topics.mapped else ():
        valid, named = [item.name for item in features], getattr(topics, group)
        for name in named:
            if name not in valid:
                raise TaskError(
                    f"data: topics: {group} names '{name}', which the task lacks; valid are {', '.join(valid)}"
                )
        missing = [item.name for item in features if item.name not in named and not item.topic]
        if missing:
            raise TaskError(f"data: topics: {group} lacks '{missing[0]}'; valid is a place for every {group}")
    seen = {item.name: item.kind for item in task.observation}
    for item in task.action:
        if topics.action.get(item.name) == NEXT and seen.get(item.name) != item.kind:
            raise TaskError(
                f"data: topics: action '{item.name}' is '{NEXT}', but the task observes no {item.kind} of that name"
            )
    if topics.episodes.gap and set(topics.action.values()) == {NEXT}:
        raise TaskError(
            f"data: topics: episodes end at a gap between commands, but every action is '{NEXT}', which is no command; "
            "valid are topic, table, or begin and end"
        )
    if NEXT in topics.observation.values():
        raise TaskError(f"data: topics: an observation is '{NEXT}'; only an action may be that")


def _signed(feature: Feature) -> dict[str, object]:
    """Return what a signature covers of a feature: what only some have is left out of others, whose signatures stay."""
    return {name: value for name, value in asdict(feature).items() if value or name not in (*SOURCE, "depth", "names")}


def _check_shapes(task: Task) -> None:
    """Raise TaskError if nothing says what may not touch a place, or an episode would start in one."""
    places, parts = task.limits.keep_out, task.tool_shape
    check_names("tool_shape", [part.name for part in parts])
    if places and not parts:
        raise TaskError(
            f"limits: keep_out names {', '.join(place.name for place in places)}, but the task has no tool_shape; "
            "valid are the spheres and capsules that move with the tool"
        )
    check_held(parts, task.limits.gripper_max)
    if places and task.start is not None:
        check_free(places, parts, task.start.tool_min, task.start.tool_max, "start")


def _check_start(start: Start, limits: Limits) -> None:
    """Raise TaskError unless the start is a box inside the workspace."""
    corners = zip(start.tool_min, start.tool_max, limits.workspace_min, limits.workspace_max, "xyz", strict=True)
    for low, high, inner, outer, axis in corners:
        if not inner <= low <= high <= outer:
            raise TaskError(
                f"start: {axis} runs from {low} to {high}; valid is min <= max inside the workspace {inner} to {outer}"
            )

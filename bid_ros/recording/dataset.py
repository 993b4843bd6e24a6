"""The data set that a policy is trained on: observations and actions on the task's time grid, in one file."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature, FeatureKind
from bid_ros.core.files import replacing
from bid_ros.core.rotation import matrix_from_6d
from bid_ros.core.task import Task
from bid_ros.core.units import doubt, impossible

FORMAT: Final = 1
INTERVENTION: Final = "intervention"
ARRAYS: Final = ("actions", "stamps_ns", "episode_ends", "seeds", "truncated")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Episodes of one task, one after the other.

    Attributes:
        observations: ``(T, *shape)`` by feature; images uint8 rgb or uint16 mm, vectors float64 in the task's
            units and frames.
        actions: ``(T, D)`` float64 in the order and units of the task's action features. Row ``t`` is the command to
            the robot for the time ``stamps_ns[t]``.
        stamps_ns: ``(T,)`` int64, ROS time of the row's camera frames.
        episode_ends: ``(E,)`` int64, index one past the last row of each episode.
        labels: label of each episode, E of them.
        seeds: ``(E,)`` uint64, seed of each episode's scene.
        task: name of the task.
        task_signature: ``Task.signature()``.
        truncated: ``(E,)`` bool: the rows end before the episode (a gap in the frames follows), so the actions after
            the last row are unknown. Default: none.
        intervention: ``(T,)`` bool: teleoperation moved the arm at this row, not a policy. Default: nowhere.

    Raises:
        RecordingError: the number of rows or episodes differs between the fields.
    """

    observations: Mapping[str, NDArray[Any]]
    actions: NDArray[np.float64]
    stamps_ns: NDArray[np.int64]
    episode_ends: NDArray[np.int64]
    labels: tuple[str, ...]
    seeds: NDArray[np.uint64]
    task: str
    task_signature: str
    truncated: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    intervention: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __post_init__(self) -> None:
        if self.truncated.size == 0:
            object.__setattr__(self, "truncated", np.zeros(len(self.episode_ends), dtype=np.bool_))
        rows = len(self.stamps_ns)
        if self.intervention.size == 0:
            object.__setattr__(self, "intervention", np.zeros(rows, dtype=np.bool_))
        for name, values in [
            *self.observations.items(),
            ("actions", self.actions),
            (INTERVENTION, self.intervention),
        ]:
            if len(values) != rows:
                raise RecordingError(f"data set: '{name}' has {len(values)} rows; valid is {rows}, one per stamp")
        ends = self.episode_ends
        if len(ends) == 0 or ends[0] < 1 or (np.diff(ends) < 1).any() or ends[-1] != rows:
            raise RecordingError(f"data set: episode_ends is {ends.tolist()}; valid increases from 1 or more to {rows}")
        for name in ("labels", "seeds", "truncated"):
            if (count := len(getattr(self, name))) != len(ends):
                raise RecordingError(f"data set: {count} {name}; valid is {len(ends)}, one per episode")

    @property
    def rows(self) -> int:
        """T, number of rows."""
        return len(self.stamps_ns)

    @property
    def episodes(self) -> int:
        """E, number of episodes."""
        return len(self.episode_ends)

    @property
    def episode_starts(self) -> NDArray[np.int64]:
        """``(E,)``: index of the first row of each episode."""
        return np.concatenate([[0], self.episode_ends[:-1]]).astype(np.int64)

    @cached_property
    def demonstrations(self) -> NDArray[np.int64]:
        """``(E,)``: number of the demonstration of each episode. A gap in the recording cuts a demonstration in two."""
        same = [
            bool(self.truncated[i - 1]) and self.seeds[i] == self.seeds[i - 1] and self.labels[i] == self.labels[i - 1]
            for i in range(1, self.episodes)
        ]
        return np.concatenate([[0], np.cumsum(~np.array(same, dtype=np.bool_))]).astype(np.int64)

    @cached_property
    def sha256(self) -> str:
        """Hash of the content: names, types, shapes and values. It does not depend on the file."""
        digest = hashlib.sha256()
        for name, values in sorted(self._arrays().items()):
            digest.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write one compressed ``.npz``, atomically.

        Raises:
            RecordingError: if the file cannot be written.
        """
        arrays: dict[str, Any] = {**self._arrays(), "sha256": np.array(self.sha256)}
        try:
            with replacing(Path(path)) as part, part.open("wb") as stream:
                np.savez_compressed(stream, **arrays)
        except OSError as error:
            raise RecordingError(f"data set {path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: str | Path) -> Dataset:
        """Read what :meth:`save` wrote.

        Raises:
            RecordingError: the file is missing, is not a data set, or its content does not match its hash.
        """
        path = Path(path)
        if not path.is_file():
            raise RecordingError(f"data set {path} does not exist")
        try:
            with path.open("rb") as file:
                if not zipfile.is_zipfile(file):
                    raise RecordingError(f"data set {path} is damaged or of another kind: it is no whole npz file")
            with np.load(path, allow_pickle=False) as content:
                if "about" not in content.files:
                    raise foreign_file(path, content.files)
                arrays = {name: content[name] for name in content.files}
            dataset, expected = _from_arrays(arrays), str(arrays["sha256"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise RecordingError(f"data set {path} is damaged or of another kind: {error}") from error
        if dataset.sha256 != expected:
            raise RecordingError(f"data set {path} is damaged: its content has another hash than it says")
        return dataset

    def validate(self, task: Task) -> None:
        """Check that a policy for ``task`` can be trained on this data.

        Raises:
            RecordingError: the data are of another task, a feature is missing or has another shape or type, a value is
                not finite, or an episode is shorter than the observation window.
        """
        if self.task_signature != task.signature():
            raise RecordingError(
                f"data set was made for task '{self.task}' with other features or rates than those of '{task.name}'"
            )
        for feature in task.observation:
            if feature.name not in self.observations:
                raise RecordingError(
                    f"data set lacks observation '{feature.name}'; it has {', '.join(self.observations)}"
                )
            _check(feature, self.observations[feature.name])
            self._check_unit(feature, self.observations[feature.name], task)
        if self.actions.shape[1:] != (task.action_dim,):
            raise RecordingError(f"data set has actions {self.actions.shape}; the task says (T, {task.action_dim})")
        _check_finite("actions", self.actions)
        for feature, columns in task.action_columns:
            self._check_unit(feature, self.actions[:, columns], task)
        lengths = np.diff(self.episode_ends, prepend=0)
        if lengths.min() < task.observation_steps:
            raise RecordingError(
                f"episode {int(lengths.argmin())} of the data set has {int(lengths.min())} rows; "
                f"valid is at least observation_steps {task.observation_steps}"
            )

    def _check_unit(self, feature: Feature, values: NDArray[Any], task: Task) -> None:
        """Raise RecordingError for numbers that cannot be rad or m, unless the task file says that they are."""
        if not impossible(feature.kind, values) or feature.name in (task.data.unit if task.data else {}):
            return
        if why := doubt(feature.kind, feature.name, values, task.limits):
            raise RecordingError(f"data set: {why}")

    def _arrays(self) -> dict[str, NDArray[Any]]:
        about = {"format": FORMAT, "task": self.task, "task_signature": self.task_signature, "labels": self.labels}
        observed = {f"observation.{name}": np.asarray(values) for name, values in self.observations.items()}
        others = {name: getattr(self, name) for name in ARRAYS}
        if self.intervention.any():  # without one the data set is as it was before there were any
            others[INTERVENTION] = self.intervention
        return observed | others | {"about": np.array(json.dumps(about, sort_keys=True))}


def check_place(path: Path) -> None:
    """Raise RecordingError if a data set at this path would replace a folder, or a file of another kind."""
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            if "about.npy" in file.namelist():
                return
    if path.exists():
        inside = f", such as {path / 'dataset.npz'}" if path.is_dir() else ""
        raise RecordingError(f"{path} exists and is no data set of bid; valid is a new file, or one to replace{inside}")


def foreign_file(path: Path, names: Sequence[str]) -> RecordingError:
    """Return what is wrong with a file of arrays that another program wrote, of which ``names`` are the names."""
    return RecordingError(
        f"{path} is no data set of bid: it holds {', '.join(names[:5]) or 'nothing'}; valid is what bid data build "
        "makes of bags, or bid bench data of a benchmark's file"
    )


def _from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Dataset:
    about = json.loads(str(arrays["about"]))
    if about["format"] != FORMAT:
        raise ValueError(f"format {about['format']}; valid is {FORMAT}")
    prefix = "observation."
    return Dataset(
        observations={name.removeprefix(prefix): item for name, item in arrays.items() if name.startswith(prefix)},
        labels=tuple(about["labels"]),
        task=about["task"],
        task_signature=about["task_signature"],
        **{name: arrays[name] for name in ARRAYS},
        **{name: arrays[name] for name in (INTERVENTION,) if name in arrays},
    )


def _check(feature: Feature, values: NDArray[Any]) -> None:
    if values.shape[1:] != feature.shape or values.dtype != feature.dtype:
        raise RecordingError(
            f"data set has '{feature.name}' as {values.dtype} {values.shape}; "
            f"the task says {feature.dtype} (T, {', '.join(map(str, feature.shape))})"
        )
    if feature.kind != "image":
        _check_finite(feature.name, values)


def _check_finite(name: str, values: NDArray[Any]) -> None:
    bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if bad.any():
        raise RecordingError(f"data set: '{name}' is not finite in row {int(bad.argmax())}")


IDLE_ROWS: Final = 3  # rows kept before the first motion
MOVED_M: Final = 0.001
MOVED_RAD: Final = 0.005
MOVED: Final[dict[FeatureKind, float]] = {"position": MOVED_M, "gripper": MOVED_M, "joints": MOVED_RAD}


def first_row(actions: NDArray[np.float64], task: Task) -> int | None:
    """Return the first row of an episode to keep: ``IDLE_ROWS`` before the command first moves. None: it never does.

    Args:
        actions: ``(T, D)``.
        task: what their columns are.
    """
    if not len(actions):
        return None
    moved = np.zeros(len(actions), dtype=np.bool_)
    for kind, most in MOVED.items():
        columns = task.columns(kind)
        if columns is not None:
            part = actions[:, columns]
            moved |= np.linalg.norm(part - part[0], axis=1) > most
    columns = task.columns("rotation_6d")
    if columns is not None:
        turns = matrix_from_6d(actions[:, columns])
        cosine = (np.einsum("tij,ij->t", turns, turns[0]) - 1) / 2
        moved |= np.arccos(np.clip(cosine, -1, 1)) > MOVED_RAD
    return max(0, int(moved.argmax()) - IDLE_ROWS) if moved.any() else None


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Return the episodes of all parts, one after the other. There is at least one part, and all are of one task."""
    offsets = np.cumsum([0, *(part.rows for part in parts[:-1])])
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("actions", "stamps_ns", "seeds", "truncated", "intervention")
    }
    return replace(
        parts[0],
        observations={
            name: np.concatenate([part.observations[name] for part in parts]) for name in parts[0].observations
        },
        episode_ends=np.concatenate([part.episode_ends + at for part, at in zip(parts, offsets, strict=True)]),
        labels=tuple(label for part in parts for label in part.labels),
        **whole,
    )

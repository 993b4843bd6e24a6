"""Reads the files of demonstrations that people have published, and makes data sets of demonstrations."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

HUMAN: Final = "human"
"""The label of demonstrations by people."""
ENDS: Final = "episode_ends"


def read_arrays(path: Path, what: str, columns: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Return arrays of an npz file. No pickle is read.

    Args:
        path: of the file.
        what: it holds, the subject of each sentence, such as ``Push-T data``.
        columns: shape of a row, by the name of each array that is needed; :data:`ENDS` has whole numbers.

    Raises:
        RecordingError: the file is missing or damaged, lacks an array, or has one of another shape, of no numbers or
            without rows.
    """
    if not path.is_file():
        raise RecordingError(f"{what} {path} {'is no file' if path.exists() else 'does not exist'}")
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in columns if name in content.files}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordingError(f"{what} {path} is damaged or of another kind: {error}") from error
    if missing := next((name for name in columns if name not in arrays), ""):
        raise RecordingError(f"{what} {path} lacks '{missing}'; needed are {', '.join(columns)}")
    for name, shape in columns.items():
        array, kinds = arrays[name], "iu" if name == ENDS else "fiu"
        if array.ndim != 1 + len(shape) or array.shape[1:] != shape or array.dtype.kind not in kinds:
            found = f"{what} {path}: '{name}' is {array.dtype} {array.shape}"
            raise RecordingError(f"{found}; valid are {'whole ' if kinds == 'iu' else ''}numbers in rows of {shape}")
        if not len(array):
            raise RecordingError(f"{what} {path}: '{name}' has no rows; valid is one or more")
    return arrays


def as_dataset(
    task: Task,
    observations: Mapping[str, NDArray[np.float64]],
    actions: NDArray[np.float64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    label: str = HUMAN,
    seeds: Sequence[int] | None = None,
) -> Dataset:
    """Return demonstrations as a data set.

    Args:
        task: what its rows are of.
        observations: ``(T, S)`` by feature.
        actions: ``(T, D)``.
        ends: ``(E,)`` one past the last row of each episode.
        steps: ``(T,)`` step of each row, from which its time follows.
        label: of every episode.
        seeds: of the episodes; None: their numbers.

    Raises:
        RecordingError: the arrays do not fit one another.
    """
    return Dataset(
        observations=observations,
        actions=actions,
        stamps_ns=steps * task.dt_ns,
        episode_ends=ends,
        labels=(label,) * len(ends),
        seeds=np.array(range(len(ends)) if seeds is None else seeds, dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
    )


def joined_episodes(
    task: Task, observations: Sequence[Mapping[str, NDArray[np.float64]]], actions: Sequence[NDArray[np.float64]]
) -> Dataset:
    """Return demonstrations by people, each with its own values, as a data set in which each begins at time 0.

    Raises:
        RecordingError: there are none, or they do not fit ``task``.
    """
    if not actions:
        raise RecordingError("there is no episode; valid is one or more")
    lengths = [len(item) for item in actions]
    dataset = as_dataset(
        task,
        {name: np.concatenate([shown[name] for shown in observations]) for name in observations[0]},
        np.concatenate(actions),
        np.cumsum(lengths, dtype=np.int64),
        np.concatenate([np.arange(rows, dtype=np.int64) for rows in lengths]),
    )
    dataset.validate(task)
    return dataset

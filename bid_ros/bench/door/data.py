"""The human demonstrations of Adroit's door for training."""

from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.bench.demonstrations import ENDS, as_dataset, read_arrays
from bid_ros.bench.door.env import ACTUATORS, features
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

RATE_HZ: Final = 25.0
COLUMNS: Final = {"observation": (39,), "action": (ACTUATORS,), ENDS: ()}  # of each array that is read


def human_dataset(path: str | Path, task: Task) -> Dataset:
    """Read ``adroit_door_human.npz`` (Rajeswaran et al., RSS 2018, re-packed) as a data set for ``task``.

    Row ``t`` holds what was seen at step ``t`` and the action that followed, clipped to -1 to 1 as the environment
    does it.

    Args:
        path: file with ``observation`` (T, 39), ``action`` (T, 28) and ``episode_ends`` (E,).
        task: ``config/door.yaml``.

    Raises:
        RecordingError: the file is missing, damaged or of another kind, or ``task`` asks for something else.
    """
    path = Path(path)
    arrays = read_arrays(path, "door data", COLUMNS)
    if task.rate_hz != RATE_HZ:
        raise RecordingError(f"door data has {RATE_HZ:g} rows a second; task '{task.name}' has {task.rate_hz:g}")
    shown, ends = arrays["observation"].astype(np.float64), arrays[ENDS].astype(np.int64)
    try:
        actions = np.clip(arrays["action"].astype(np.float64), -1.0, 1.0)
        dataset = as_dataset(task, features(shown), actions, ends, np.arange(len(shown), dtype=np.int64))
        dataset.validate(task)
    except RecordingError as error:
        raise RecordingError(f"door data {path}: {error}") from error
    return dataset

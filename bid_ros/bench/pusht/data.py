"""Observations of Push-T, in an episode and in the human demonstrations for training."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.demonstrations import ENDS, as_dataset, read_arrays
from bid_ros.bench.pusht.env import PushTState, keypoints
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

Array = NDArray[np.float64]

RATE_HZ: Final = 10.0
COLUMNS: Final = {"state": (5,), "action": (2,), ENDS: ()}  # of each array that is read


def observation_values(state: PushTState) -> dict[str, Array]:
    """Return the raw value of each feature that ``config/pusht.yaml`` observes, by its name, px.

    ``block_keypoints`` ``(18,)`` (x, y of the first point, of the second, ...) and ``agent_position`` ``(2,)``.
    """
    return _features(state.agent, state.keypoints)


def human_dataset(path: str | Path, task: Task) -> Dataset:
    """Read ``pusht_cchi_v7_lowdim.npz`` (Chi et al., "Diffusion Policy", RSS 2023) as a data set for ``task``.

    Row ``t`` holds what was seen at step ``t`` and the target that the person then gave, which brought the agent to
    where row ``t + 1`` sees it. The key points are computed from the block's pose as the environment computes them,
    so that training and rollout agree; the recorded ones differ by up to 2 px while the block turns. Episode ``k``
    starts as the environment's seed ``k`` does.

    Args:
        path: file with ``state`` (T, 5: agent x, y, block x, y in px, block angle in rad), ``action`` (T, 2: px) and
            ``episode_ends`` (E,).
        task: ``config/pusht.yaml``.

    Raises:
        RecordingError: the file is missing or damaged, lacks an array, has one of another shape or with values that
            are not finite, an episode shorter than the observation window, or ``task`` asks for something else.
    """
    path = Path(path)
    arrays = _read(path)
    if task.rate_hz != RATE_HZ:
        raise RecordingError(f"Push-T data has {RATE_HZ:g} rows a second; task '{task.name}' has {task.rate_hz:g}")
    state, ends = arrays["state"].astype(np.float64), arrays[ENDS].astype(np.int64)
    try:
        seen, actions = _features(state[:, :2], keypoints(state[:, 2:5])), arrays["action"].astype(np.float64)
        dataset = as_dataset(task, seen, actions, ends, np.arange(len(state), dtype=np.int64))
        dataset.validate(task)
    except RecordingError as error:
        raise RecordingError(f"Push-T data {path}: {error}") from error
    return dataset


def _features(agent: Array, points: Array) -> dict[str, Array]:
    """Name the values of agents ``(..., 2)`` and key points ``(..., 9, 2)``."""
    return {"block_keypoints": points.reshape(*points.shape[:-2], -1), "agent_position": agent}


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays that are needed, with states that are finite."""
    arrays = read_arrays(path, "Push-T data", COLUMNS)
    if not np.isfinite(arrays["state"]).all():
        row = int((~np.isfinite(arrays["state"]).all(axis=1)).argmax())
        raise RecordingError(f"Push-T data {path}: 'state' is not finite in row {row}")
    return arrays

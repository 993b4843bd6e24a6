"""The public demonstrations of Franka Kitchen by people (Gupta et al., CoRL 2019), in the two forms that are around.

``kitchen_demos_multitask`` holds the logs of the simulator, ``*.mjl``: their controls are targets of the joints, and
Diffusion Policy (Chi et al., RSS 2023) trains on them. Behavior Transformers (Shafiullah et al., NeurIPS 2022) made
three arrays of them, whose actions are the environment's velocities; here they become the targets that the environment
makes of them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.demonstrations import joined_episodes
from bid_ros.bench.kitchen.catalogue import ARM, OBJECTS
from bid_ros.bench.kitchen.env import RATE_HZ, features
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

Array = NDArray[np.float64]

LOGS: Final = "*.mjl"
EVERY: Final = 40  # rows of a log, 2 ms each, of which one is read
HEADER: Final = 7  # whole numbers: qpos, qvel, ctrl, mocap bodies, sensor and user data of a row, letters of a name
OBSERVATIONS, ACTIONS, MASK = "observations_seq.npy", "actions_seq.npy", "existence_mask.npy"
ARRAYS: Final = (OBSERVATIONS, ACTIONS, MASK)
FASTEST: Final = 2.0  # rad/s and m/s that an action of 1 stands for


def human_dataset(path: str | Path, task: Task) -> Dataset:
    """Read a folder of demonstrations as a data set for ``task``.

    Row ``t`` holds what was seen at step ``t`` and the targets of the joints that were then commanded.

    Args:
        path: folder with logs, in it or below, or with the three arrays.
        task: ``config/kitchen.yaml``.

    Raises:
        RecordingError: the folder is missing, holds neither, or is damaged, or ``task`` asks for something else.
    """
    path = Path(path)
    if task.rate_hz != RATE_HZ:
        raise RecordingError(f"kitchen data has {RATE_HZ:g} rows a second; task '{task.name}' has {task.rate_hz:g}")
    if all((path / name).is_file() for name in ARRAYS):
        episodes = list(_of_arrays(path))
    elif logs := sorted(path.rglob(LOGS)):
        episodes = [_of_log(log) for log in logs]
    else:
        raise RecordingError(f"kitchen data {path}: no folder with logs ({LOGS}) or with {', '.join(ARRAYS)}")
    try:
        return joined_episodes(task, [features(shown) for shown, _ in episodes], [actions for _, actions in episodes])
    except RecordingError as error:
        raise RecordingError(f"kitchen data {path}: {error}") from error


def _of_log(path: Path) -> tuple[Array, Array]:
    """Return positions ``(T, 30)`` and targets ``(T, 9)`` of a log of the simulator."""
    content = path.read_bytes()
    size = 4 * HEADER
    if len(content) < size:
        raise RecordingError(f"kitchen data {path} is damaged: it has {len(content)} bytes")
    positions, speeds, controls, bodies, sensors, users, letters = np.frombuffer(content, "<i4", HEADER).tolist()
    row = 1 + positions + speeds + controls + 7 * bodies + sensors + users
    rest = len(content) - size - letters
    if positions < ARM + OBJECTS or controls != ARM or min(speeds, bodies, sensors, users, letters) < 0:
        raise RecordingError(
            f"kitchen data {path}: a row has {positions} positions and {controls} controls; valid are at least "
            f"{ARM + OBJECTS} and {ARM}"
        )
    if rest <= 0 or rest % (4 * row):
        raise RecordingError(f"kitchen data {path} is damaged: it ends within a row")
    rows = np.frombuffer(content, "<f4", rest // 4, size + letters).reshape(-1, row)[::EVERY].astype(np.float64)
    places = rows[:, 1 : 1 + positions]
    shown = np.concatenate([places[:, :ARM], places[:, -OBJECTS:]], axis=1)
    first = 1 + positions + speeds
    return shown, rows[:, first : first + ARM]


def _of_arrays(path: Path) -> Iterator[tuple[Array, Array]]:
    """Yield positions ``(T, 30)`` and targets ``(T, 9)`` of each episode of the three arrays."""
    shown, actions, mask = (_load(path / name) for name in ARRAYS)
    if shown.ndim != 3 or shown.shape[2] < ARM + OBJECTS or actions.shape != (*shown.shape[:2], ARM):
        raise RecordingError(
            f"kitchen data {path}: {OBSERVATIONS} is {shown.shape} and {ACTIONS} {actions.shape}; valid are "
            f"(T, N, {ARM + OBJECTS} or more) and (T, N, {ARM}), or (N, T, ...)"
        )
    if mask.shape != shown.shape[:2]:
        raise RecordingError(f"kitchen data {path}: {MASK} is {mask.shape}; valid is {shown.shape[:2]}")
    exists = mask > 0
    if _begins_each(exists.T):  # time first, as Behavior Transformers has them
        shown, actions, exists = shown.swapaxes(0, 1), actions.swapaxes(0, 1), exists.T
    elif not _begins_each(exists):
        raise RecordingError(f"kitchen data {path}: {MASK} has gaps; valid are episodes that are there from the start")
    for seen, moved, there in zip(shown, actions, exists, strict=True):
        positions = seen[there, : ARM + OBJECTS].astype(np.float64)
        yield positions, positions[:, :ARM] + FASTEST / RATE_HZ * np.clip(moved[there].astype(np.float64), -1, 1)


def _begins_each(exists: NDArray[np.bool_]) -> bool:
    """Return whether every row is true from its start on, and false after that."""
    return bool(exists[:, :1].all() and (exists[:, 1:] <= exists[:, :-1]).all())


def _load(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RecordingError(f"kitchen data {path} is damaged or of another kind: {error}") from error
    if array.dtype.kind not in "fiub":
        raise RecordingError(f"kitchen data {path} is {array.dtype}; valid are numbers")
    return array

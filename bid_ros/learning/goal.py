"""Where each demonstration is going: the label of the auxiliary task that teaches the image encoder.

The denoising loss alone says little about what to look at: most of a chunk follows from the tool's own position.
Asked in addition where the demonstration will next close or open the gripper, the encoder has to find the place in
the images: the cup to grasp, then where to put it. The answer is known in hindsight, from the recorded actions alone,
so it needs no ground truth and works on a real robot. The head is dropped at export.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bid_ros.recording.dataset import Dataset
from bid_ros.task import Task


def goal_columns(task: Task) -> slice | None:
    """Columns of the action that hold the goal position; None if the task has no image or no position to command."""
    return task.columns("position") if task.cameras else None


def row_goals(dataset: Dataset, task: Task) -> NDArray[np.float64] | None:
    """Return ``(T, 3)``: commanded tool position, m, where the gripper is next told to close or to open.

    The row in which it is told counts as next. After the last time, and as long as nothing follows, the goal stays
    where that was; a demonstration without any has its last position. A demonstration that a gap cut into several
    episodes counts as one. None where :func:`goal_columns` is None.
    """
    position, gripper = goal_columns(task), task.columns("gripper")
    if position is None:
        return None
    goal = np.empty(dataset.rows, dtype=np.int64)
    is_open = np.zeros(dataset.rows, dtype=np.bool_)
    if gripper is not None:
        width = dataset.actions[:, gripper.start]
        is_open = width > (width.min() + width.max()) / 2
    for start, end in _demonstrations(dataset):
        goal[start:end] = start + _next_switch(is_open[start:end])
    goals: NDArray[np.float64] = dataset.actions[goal, position]
    return goals


def _demonstrations(dataset: Dataset) -> list[tuple[int, int]]:
    """First row and the one after the last of each demonstration."""
    owner = dataset.demonstrations
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    last = np.append(first[1:], len(owner)) - 1
    return list(zip(dataset.episode_starts[first].tolist(), dataset.episode_ends[last].tolist(), strict=True))


def _next_switch(is_open: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row at or after each row ``(T,)`` at which ``is_open`` changes; the last such row, or the last row, else."""
    rows = np.arange(len(is_open))
    switches = np.flatnonzero(is_open[1:] != is_open[:-1]) + 1
    if not len(switches):
        return np.full(len(is_open), rows[-1])
    found: NDArray[np.int64] = switches[np.minimum(np.searchsorted(switches, rows), len(switches) - 1)]
    return found

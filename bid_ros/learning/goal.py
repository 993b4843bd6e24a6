"""The goal of each demonstration: the label of the auxiliary task that trains the image encoder.

The denoising loss alone trains the image encoder little, because most of a chunk follows from the tool's own position.
The auxiliary task is to predict where the demonstration will next close or open the gripper. So the encoder must find
that place in the images: the cup to grasp, then where to put it. The label comes from the recorded actions alone, so it
needs no ground truth and works on a real robot. The head is not exported.
"""

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset


def goal_columns(task: Task) -> slice | None:
    """Return the action columns of the goal position. None if the task has no image or commands no position."""
    return task.columns("position") if task.cameras else None


def goal_observed(task: Task) -> str:
    """Return the observed position that tells the goal where a task commands joints, not a position; else nothing."""
    if not task.cameras or task.columns("joints") is None or task.columns("position") is not None:
        return ""
    return next((item.name for item in task.vectors if item.kind == "position"), "")


def goal_size(task: Task) -> int:
    """Return the number of values of the goal, 0 if there is none."""
    columns = goal_columns(task)
    if columns is not None:
        return int(columns.stop - columns.start)
    return 3 if goal_observed(task) else 0


def row_goals(dataset: Dataset, task: Task) -> NDArray[np.float64] | None:
    """Return ``(T, 3)``: commanded tool position, m, at the next command to close or open the gripper.

    Of a task that commands joints it is the observed one.

    The row of the command itself counts as next. After the last command the goal stays at its position. Without any
    command it is the last position. A demonstration that a gap cut into several episodes counts as one. None where
    :func:`goal_size` is 0.
    """
    position, gripper, observed = goal_columns(task), task.columns("gripper"), goal_observed(task)
    if position is None and not observed:
        return None
    places = dataset.observations[observed] if position is None else dataset.actions[:, position]
    goal = np.empty(dataset.rows, dtype=np.int64)
    is_open = np.zeros(dataset.rows, dtype=np.bool_)
    if gripper is not None:
        width = dataset.actions[:, gripper.start]
        is_open = width > (width.min() + width.max()) / 2
    owner = np.repeat(dataset.demonstrations, np.diff(dataset.episode_ends, prepend=0))
    for rows in np.split(np.arange(dataset.rows), np.flatnonzero(np.diff(owner)) + 1):
        goal[rows] = rows[0] + _next_switch(is_open[rows])
    goals: NDArray[np.float64] = np.asarray(places[goal], dtype=np.float64)
    return goals


def _next_switch(is_open: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row at or after each row ``(T,)`` at which ``is_open`` changes; the last such row, or the last row, else."""
    rows = np.arange(len(is_open))
    switches = np.flatnonzero(is_open[1:] != is_open[:-1]) + 1
    if not len(switches):
        return np.full(len(is_open), rows[-1])
    found: NDArray[np.int64] = switches[np.minimum(np.searchsorted(switches, rows), len(switches) - 1)]
    return found

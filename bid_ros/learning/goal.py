"""Where each demonstration ended up: the label of the auxiliary task that teaches the image encoder.

The denoising loss alone says little about what to look at: most of a chunk follows from the tool's own position.
Asked in addition where the demonstration finally let go, the encoder has to find the place in the images. The answer
is known in hindsight, from the recorded actions alone, so it needs no ground truth and works on a real robot.
The head is dropped at export.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bid_ros.recording.dataset import Dataset
from bid_ros.task import Task


def goal_columns(task: Task) -> slice | None:
    """Columns of the action that hold the goal position; None if the task has no image or no position to command."""
    return task.columns("position") if task.cameras else None


def episode_goals(dataset: Dataset, task: Task) -> NDArray[np.float64] | None:
    """Return ``(E, 3)``: commanded tool position, m, where each demonstration opens the gripper for the last time.

    One that never opens it has its last position. All episodes of a demonstration that a gap cut have the same goal.
    None where :func:`goal_columns` is None.
    """
    position, gripper = goal_columns(task), task.columns("gripper")
    if position is None:
        return None
    owner = dataset.demonstrations
    first, last = (np.searchsorted(owner, owner, side=side) for side in ("left", "right"))
    pairs = list(zip(dataset.episode_starts[first].tolist(), dataset.episode_ends[last - 1].tolist(), strict=True))
    rows = [end - 1 for _, end in pairs]
    if gripper is not None:
        width = dataset.actions[:, gripper.start]
        middle = (width.min() + width.max()) / 2
        rows = [_last_opening(width[start:end] > middle, start, end) for start, end in pairs]
    goals: NDArray[np.float64] = dataset.actions[rows, position]
    return goals


def _last_opening(is_open: NDArray[np.bool_], start: int, end: int) -> int:
    """Row at which ``is_open`` last turns true; a constant width never turns and gives the last row."""
    turns = np.flatnonzero(is_open[1:] & ~is_open[:-1])
    return start + 1 + int(turns[-1]) if len(turns) else end - 1

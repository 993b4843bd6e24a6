"""Ranges of what a task observes and commands, where no training data say them."""

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.policy.normalise import LinearNormaliser

ANGLE = 3.2  # rad, a little over half a turn
SPREAD = 0.125  # of a range, where no data say it

Ranges = tuple[dict[str, LinearNormaliser], LinearNormaliser, NDArray[np.float64]]


def task_ranges(task: Task) -> Ranges:
    """Return what a task's limits allow: normalisers of vectors by name, one of the action, and its spread ``(D,)``.

    All are in task units.
    """
    low, high = (np.concatenate([_range(task, item)[end] for item in task.action]) for end in (0, 1))
    observation = {item.name: LinearNormaliser(*_range(task, item)) for item in task.vectors}
    return observation, LinearNormaliser(low, high), SPREAD * (high - low)


def _range(task: Task, item: Feature) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    limits = task.limits
    if item.kind == "position":
        return np.array(limits.workspace_min, dtype=np.float64), np.array(limits.workspace_max, dtype=np.float64)
    if item.kind == "gripper":
        ends = limits.gripper_min, limits.gripper_max
    elif item.kind == "points":
        ends = limits.workspace_min[0], limits.workspace_max[0]
    else:
        bound = 1.0 if item.kind == "rotation_6d" else ANGLE
        ends = -bound, bound
    return np.full(item.size, ends[0], dtype=np.float64), np.full(item.size, ends[1], dtype=np.float64)

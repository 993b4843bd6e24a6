"""What is published of a prediction: its rows from the current one on, as rotations and widths that are valid."""

import numpy as np

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_to_6d
from bid_ros.core.task import Task


def publishable(actions: Array, stamp_ns: int, task: Task, sequence: int) -> ActionChunk:
    """Return the executable part of a prediction ``(H, D)`` as a chunk of ``H - (To - 1)`` rows.

    Row ``To - 1`` belongs to ``stamp_ns``. The output of a network is only nearly a rotation or a valid width:
    rotations are made orthonormal, and gripper widths are clipped to the task's limits. Positions are not changed: the
    safety node refuses one outside the workspace.
    """
    rows = publishable_rows(actions[task.observation_steps - 1 :], task)
    return ActionChunk(stamp_ns, task.dt_ns, rows, frame_id=task.base_frame, sequence=sequence)


def publishable_rows(actions: Array, task: Task) -> Array:
    """Return a copy of actions ``(..., D)`` as :func:`publishable` publishes them."""
    rows = np.array(actions, dtype=np.float64)
    for feature, columns in task.action_columns:
        if feature.kind == "rotation_6d":
            rows[..., columns] = matrix_to_6d(matrix_from_6d(rows[..., columns]))
        elif feature.kind == "gripper":
            rows[..., columns] = np.clip(rows[..., columns], task.limits.gripper_min, task.limits.gripper_max)
    return rows

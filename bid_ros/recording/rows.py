"""Rows of a data set: where an episode begins, and how parts become one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import matrix_from_6d
from bid_ros.core.task import FeatureKind, Task
from bid_ros.recording.dataset import Dataset

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

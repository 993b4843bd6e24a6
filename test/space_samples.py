"""Random chunks and observations of the shipped placing task, with any rotations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bid_ros.core.observation import Observation
from bid_ros.core.task import Task, load_task

ROOT = Path(__file__).resolve().parent.parent
PLACE: Task = load_task(ROOT / "config" / "franka_place" / "task.yaml")


def six(rotation: Rotation) -> np.ndarray:
    """The task's six numbers of rotations, by SciPy: the first two columns of each matrix."""
    return np.swapaxes(rotation.as_matrix()[..., :2], -1, -2).reshape(-1, 6)


def random_chunks(rng: np.random.Generator, shape: tuple[int, ...] = (4, 16)) -> np.ndarray:
    """Chunks of the placing task, with any rotation and any of the two ends of the gripper."""
    chunks = np.empty((*shape, 10))
    chunks[..., :3] = rng.uniform(-0.5, 0.5, (*shape, 3))
    chunks[..., 3:9] = six(Rotation.random(int(np.prod(shape)), rng=rng)).reshape(*shape, 6)
    chunks[..., 9] = rng.choice([0.0, 0.08], shape)
    return chunks


def random_observation(rng: np.random.Generator, steps: int = 2) -> Observation:
    """An observation of the placing task, with any rotation."""
    values: dict[str, np.ndarray] = {
        "tool_position": rng.uniform(-0.5, 0.5, (steps, 3)),
        "tool_rotation": six(Rotation.random(steps, rng=rng)),
        "gripper_width": rng.uniform(0.0, 0.08, (steps, 1)),
    }
    for item in PLACE.cameras:
        values[item.name] = rng.integers(0, 256, (steps, *item.shape), dtype=np.uint8)
    return Observation(1_000_000_000, values)

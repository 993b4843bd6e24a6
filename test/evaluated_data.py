"""A small data set to evaluate, and workers that processes which start afresh can import."""

import numpy as np

from bid_ros.recording.dataset import Dataset
from bid_ros.system.folder import find_system

TASK = find_system("franka_place").task
ROWS = 9
LABELS = {1: "clean", 2: "diverse"}


def dataset(seeds, rows=ROWS):
    """Return an episode of each seed in which the tool stays where it is, as the tiny policy asks."""
    count = rows * len(seeds)
    state = np.tile([0.5, 0.0, 0.3, 1.0, 0, 0, 0, -1.0, 0, 0.04], (count, 1))
    images = {
        camera.name: np.concatenate(
            [np.random.default_rng(seed).integers(0, 256, (rows, *camera.shape), np.uint8) for seed in seeds]
        )
        for camera in TASK.cameras
    }
    return Dataset(
        observations={
            **images,
            "tool_position": state[:, :3],
            "tool_rotation": state[:, 3:9],
            "gripper_width": state[:, 9:],
        },
        actions=state,
        stamps_ns=np.concatenate([np.arange(rows, dtype=np.int64) * TASK.dt_ns + seed for seed in seeds]),
        episode_ends=np.arange(1, len(seeds) + 1) * rows,
        labels=tuple(LABELS.get(seed, "other") for seed in seeds),
        seeds=np.array(seeds, dtype=np.uint64),
        task=TASK.name,
        task_signature=TASK.signature(),
    )

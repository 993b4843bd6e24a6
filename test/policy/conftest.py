"""A tiny real bundle for the shipped task, and observations for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task, load_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy

POSE = {"tool_position": [0.5, 0.1, 0.3], "tool_rotation": [1, 0, 0, 0, -1, 0], "gripper_width": [0.04]}


@pytest.fixture(scope="session")
def task() -> Task:
    """The shipped task with images of 8x8, so that encoders cost nothing."""
    task = load_task(Path(__file__).resolve().parents[2] / "config" / "franka_place" / "task.yaml")
    small = tuple(replace(item, shape=(8, 8, 3)) if item.kind == "image" else item for item in task.observation)
    return replace(task, observation=small)


@pytest.fixture(scope="session")
def tiny(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle's folder; not to be changed."""
    from tiny_bundle import make_tiny_bundle

    return make_tiny_bundle(tmp_path_factory.mktemp("tiny"), task)


@pytest.fixture(scope="session")
def policy(tiny: Path, task: Task) -> DiffusionPolicy:
    """The tiny policy in onnxruntime."""
    return DiffusionPolicy(load_bundle(tiny, task), task, runtime="onnx")


@pytest.fixture
def observe(task: Task) -> Callable[..., Observation]:
    """Makes the observation of an arm at rest, with grey images."""

    def make(stamp_ns: int = 1_000_000_000, grey: int = 100) -> Observation:
        def value(item: Feature) -> np.ndarray:
            if item.kind == "image":
                return np.full((task.observation_steps, *item.shape), grey, np.uint8)
            return np.tile(np.array(POSE[item.name], float), (task.observation_steps, 1))

        return Observation(stamp_ns, {item.name: value(item) for item in task.observation})

    return make

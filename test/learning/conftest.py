"""A small task and demonstrations of it: carry a tool to the bright dot in the image, then open the gripper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from bid_ros.core.task import Task, parse_task
from bid_ros.learning import AugmentConfig, NetworkConfig, TrainConfig, export, train
from bid_ros.policy.bundle import Bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.recording.dataset import Dataset

SIDE = 24
ROWS = 12

MakeTask = Callable[..., Task]
MakeDataset = Callable[..., Dataset]


@contextmanager
def single() -> Iterator[None]:
    """One thread: the same sums in the same order, whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with single():
        yield


def task_content(images: bool = True, steps: int = 2, horizon: int = 8) -> dict[str, Any]:
    """What the file of the task holds."""
    vectors = [{"name": "tool_position", "kind": "position"}]
    cameras = [{"name": "front", "kind": "image", "shape": [SIDE, SIDE, 3]}]
    return {
        "name": "dot",
        "robot": "franka",
        "rate_hz": 10,
        "observation_steps": steps,
        "horizon": horizon,
        "observation": (cameras if images else []) + vectors,
        "action": [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}],
        "limits": {"workspace_min": [-1.0, -1.0, -1.0], "workspace_max": [1.0, 1.0, 1.0]},
    }


@pytest.fixture
def task_file(tmp_path) -> Path:
    """The file of the task."""
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(task_content()))
    return file


@pytest.fixture(scope="session")
def make_task() -> MakeTask:
    def make(images: bool = True, steps: int = 2, horizon: int = 8) -> Task:
        return parse_task(task_content(images, steps, horizon))

    return make


@pytest.fixture(scope="session")
def make_dataset() -> MakeDataset:
    def make(task: Task, episodes: int = 6, rows: int = ROWS, seed: int = 0) -> Dataset:
        rng = np.random.default_rng(seed)
        observations = {item.name: [] for item in task.observation}
        actions = []
        for _ in range(episodes):
            place = rng.uniform(-0.3, 0.3, 2)
            share = np.clip(np.arange(rows + 1) / (rows - 4), 0, 1)[:, None]
            path = share * np.append(place, -0.2)
            width = np.where(np.arange(1, rows + 1) >= rows - 2, 0.08, 0.02)[:, None]
            actions.append(np.hstack([path[1:], width]))
            observations["tool_position"].append(path[:-1])
            if task.cameras:
                image = rng.integers(0, 40, (rows, SIDE, SIDE, 3), dtype=np.uint8)
                column, row = (SIDE / 2 + place * SIDE).astype(int)
                image[:, row - 2 : row + 2, column - 2 : column + 2] = 230
                observations["front"].append(image)
        total = episodes * rows
        return Dataset(
            observations={name: np.concatenate(parts) for name, parts in observations.items()},
            actions=np.concatenate(actions),
            stamps_ns=np.arange(total, dtype=np.int64) * 100_000_000,
            episode_ends=np.arange(rows, total + 1, rows, dtype=np.int64),
            labels=("clean",) * episodes,
            seeds=np.arange(episodes, dtype=np.uint64),
            task=task.name,
            task_signature=task.signature(),
        )

    return make


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    return make_task()


@pytest.fixture
def dataset(task: Task, make_dataset: MakeDataset) -> Dataset:
    return make_dataset(task)


@pytest.fixture(scope="session")
def make_config() -> Callable[..., TrainConfig]:
    network = NetworkConfig(widths=(16, 32), kernel=3, condition=32, step_embedding=16, keypoints=8, image_width=8)

    def make(**changes: object) -> TrainConfig:
        values = {
            "steps": 12,
            "batch": 8,
            "device": "cpu",
            "network": network,
            "validation_share": 0.2,
            "checkpoint_every": 4,
            "validate_every": 6,
            "log_every": 3,
            "augment": AugmentConfig(shift=1),
            # An exported sampler has a copy of the network for each step: two are the fewest that follow one another.
            "diffusion": DiffusionConfig(sampling_steps=2),
        }
        return TrainConfig(**(values | changes))

    return make


@pytest.fixture(scope="session")
def trained(
    make_task: MakeTask,
    make_dataset: MakeDataset,
    make_config: Callable[..., TrainConfig],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a short run for ``task`` on ``dataset``; not to be changed."""
    task, folder = make_task(), tmp_path_factory.mktemp("trained") / "run"
    with single():
        train(make_config(), make_dataset(task), folder, task, progress=False)
    return folder


@pytest.fixture(scope="session")
def exported(trained: Path, make_task: MakeTask) -> Bundle:
    """The bundle of that run; not to be changed."""
    with single():
        return export(trained, trained.parent / "bundle", make_task())

"""Golden policies of the package lerobot, small tasks for them, and small checkpoints made here."""

from __future__ import annotations

import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.task import Task, parse_task

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """Unpack a golden case by name; the test is left out where there is no folder with them."""
    found = [path / "shared" / "golden" / "lerobot" for path in ROOT.parents]
    folders = [path for path in found if path.is_dir()]
    if not folders:
        pytest.skip("no shared folder with golden files")
    folder, cases = tmp_path_factory.mktemp("golden"), {}

    def unpacked(name: str) -> SimpleNamespace:
        if name not in cases:
            with tarfile.open(folders[0] / f"{name}.tar.xz") as file:
                file.extractall(folder, filter="data")
            cases[name] = SimpleNamespace(path=folder / name, numbers=dict(np.load(folder / name / "golden.npz")))
        return cases[name]

    return unpacked


def task_for(policy, **changes) -> Task:
    """Return a task that observes and commands what an imported policy does, under the policy's own names."""
    observation = [
        {"name": item.name, "kind": "image" if item.is_image else "joints", "shape": list(item.shape)}
        for item in policy.features
    ]
    content = {
        "name": "imported",
        "robot": "franka",
        "rate_hz": 10,
        "observation_steps": policy.observation_steps,
        "horizon": policy.horizon,
        "observation": observation,
        "action": [{"name": "action", "kind": "joints", "shape": [policy.action_dim]}],
        "limits": {
            "workspace_min": [0.0, -0.5, 0.0],
            "workspace_max": [0.9, 0.5, 0.8],
            "max_speed": 0.5,
            "max_acceleration": 2.0,
        },
    }
    return parse_task({**content, **changes})


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The helpers of this file: test modules cannot import it."""
    return SimpleNamespace(task_for=task_for)

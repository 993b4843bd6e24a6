"""Small data sets of a task, with pictures that a video can hold."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from archives import unpack
from shared_files import shared_file
from small_task import SMALL

from bid_ros.core.task import Task, parse_task
from bid_ros.formats import Options, convert, mapped, open_source
from bid_ros.recording.dataset import Dataset

ROOT = Path(__file__).resolve().parents[2]
LENGTHS = (5, 8, 4)
# Every way to write a data set: name of the format, of the target, and how.
EXACT = {
    "npz": ("npz", "set.npz", Options()),
    "zarr": ("zarr", "set.zarr", Options()),
    "zarr_zip": ("zarr", "set.zarr.zip", Options()),
    "robomimic": ("robomimic", "set.hdf5", Options()),
    "lerobot_v30_png": ("lerobot_v30", "set", Options("png")),
    "lerobot_v21_png": ("lerobot_v21", "set", Options("png")),
}
VIDEO = {"lerobot_v30": ("lerobot_v30", "set", Options()), "lerobot_v21": ("lerobot_v21", "set", Options())}


def content(**more) -> dict:
    """What the file of the task holds."""
    return {
        **SMALL,
        "observation": [
            {"name": "wrist", "kind": "image", "shape": [32, 48, 3]},
            {"name": "tool_position", "kind": "position"},
            {"name": "tool_rotation", "kind": "rotation_6d"},
            {"name": "gripper_width", "kind": "gripper"},
        ],
        "action": [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}],
        **more,
    }


@pytest.fixture
def task() -> Task:
    return parse_task(content())


@pytest.fixture
def dataset(task) -> Dataset:
    rng = np.random.default_rng(3)
    rows = sum(LENGTHS)
    coarse = rng.integers(0, 256, (rows, 3, 4, 3), np.uint8)
    pictures = np.stack([cv2.resize(each, (48, 32), interpolation=cv2.INTER_LINEAR) for each in coarse])
    return Dataset(
        observations={
            item.name: pictures if item.kind == "image" else 0.1 * rng.normal(size=(rows, *item.shape))
            for item in task.observation
        },
        actions=0.1 * rng.normal(size=(rows, task.action_dim)),
        stamps_ns=1_700_000_000_123_456_789 + np.arange(rows, dtype=np.int64) * 100_000_001,
        episode_ends=np.cumsum(LENGTHS),
        labels=("clean", "diverse", "diverse"),
        seeds=np.array([3, 2**64 - 1, 2**64 - 1], dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
        truncated=np.array([False, True, False]),
    )


@pytest.fixture
def source(dataset, task, tmp_path):
    """The data set, opened for its task."""
    dataset.save(tmp_path / "source.npz")
    return mapped(open_source(tmp_path / "source.npz"), task)


@pytest.fixture
def written(source, tmp_path):
    """Writes the data set in a way of ``EXACT`` or ``VIDEO``; returns its path."""

    def write(way: str) -> Path:
        name, target, options = (EXACT | VIDEO)[way]
        convert(source, tmp_path / target, name, options)
        return tmp_path / target

    return write


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """A data set that the package lerobot 0.6.1 wrote (H.264), and the numbers that it reads from it."""
    folder = tmp_path_factory.mktemp("golden")
    return unpacked(ROOT / "test" / "data" / "lerobot_v30.tar.xz", folder)


def unpacked(archive: Path, folder: Path) -> SimpleNamespace:
    unpack(archive, folder)
    root = folder / archive.name.removesuffix(".tar.xz")
    return SimpleNamespace(dataset=root / "dataset", numbers=dict(np.load(root / "golden.npz")))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the large golden files and data; the test is left out where there is none."""
    return shared_file("golden", "lerobot").parents[1]


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The helpers of this file: test modules cannot import it."""
    return SimpleNamespace(EXACT=EXACT, VIDEO=VIDEO, LENGTHS=LENGTHS, content=content, unpacked=unpacked)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``exact`` or ``video`` once for each way."""
    for name, ways in (("exact", EXACT), ("video", VIDEO), ("way", EXACT | VIDEO)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, list(ways))

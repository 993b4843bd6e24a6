"""The tiny task with its policy."""

from __future__ import annotations

import pytest
from tiny_scene import tiny_setup

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.rollout import load_policy
from bid_ros.bench.scene import BenchSetup


@pytest.fixture(scope="session")
def setup(tmp_path_factory: pytest.TempPathFactory) -> BenchSetup:
    """Policy, task and scene; not to be changed."""
    return tiny_setup(tmp_path_factory.mktemp("bench_bundle"))


@pytest.fixture(scope="session")
def batch(setup: BenchSetup) -> BatchPolicy:
    """The policy, loaded."""
    return load_policy(setup)

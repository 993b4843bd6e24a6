"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bid_ros.middleware import middleware_environment

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain of its own for the test and the processes it starts, on this host only."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    domain = 20 + (os.getpid() + 7 * worker) % 80
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    for name, value in middleware_environment(twin=True).items():
        monkeypatch.setenv(name, value)
    yield domain

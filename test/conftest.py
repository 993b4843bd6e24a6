"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ros_bench import Bench
from ros_domain import enter_domain

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain of its own for the test and the processes it starts, on this host only."""
    yield enter_domain(monkeypatch)


@pytest.fixture
def patient(tmp_path: Path) -> str:
    """A parameter file with longer deadlines: a computer that tests share stutters, which is no fault of a node."""
    file = tmp_path / "patient.yaml"
    nodes = {name: {"ros__parameters": {"heartbeat_deadline_s": 2.0}} for name in ("arm", "safety")}
    file.write_text(yaml.safe_dump(nodes))
    return str(file)


@pytest.fixture
def bench(ros_domain: int, tmp_path: Path) -> Iterator[Bench]:
    """A bench that cleans up after itself."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()

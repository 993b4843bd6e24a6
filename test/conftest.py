"""Fixtures that every test may use, and how the suite is divided and reported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import lanes
import pytest
import yaml
from real_time import take_back_priority
from ros_bench import Bench
from ros_domain import enter_domain
from skips import fail_if_forbidden

from bid_ros.core.task import Task, load_task
from bid_ros.system.folder import System, find_system

ROOT = Path(__file__).resolve().parent.parent
IN_WORKER = "PYTEST_XDIST_WORKER" in os.environ
pytest_plugins = ["deadlock"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> lanes.Lanes | None:
    """Divide the files between the workers, with ``--dist loadgroup``."""
    return lanes.Lanes(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_configure() -> None:
    """Let each worker have a session, and so a share of the computer, of its own."""
    if IN_WORKER:
        lanes.lead_session()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let a worker's tests that go by the clock go before those that compute."""
    if IN_WORKER:
        lanes.share(lanes.kind_of(item.nodeid))
    try:
        return (yield)
    finally:
        take_back_priority()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that is left out without a valid reason has failed."""
    report = yield
    fail_if_forbidden(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file of tests."""
    report = yield
    fail_if_forbidden(report)
    return report


@pytest.fixture
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """Folder of a system of one's own: a copy of the shipped one for placing."""
    return shutil.copytree(root / "config" / "franka_place", tmp_path / "system")


@pytest.fixture
def system(folder: Path) -> System:
    """The system in that folder."""
    return find_system(folder)


@pytest.fixture
def task(root: Path) -> Task:
    """The task that tests take where it does not matter which. A folder or a file may have one of its own."""
    return load_task(root / "config" / "franka_place" / "task.yaml")


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

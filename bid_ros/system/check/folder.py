"""Probes of a system's folder: every file, and what they say of each other."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bid_ros.cameras.config import check_depths, load_cameras
from bid_ros.core.errors import BidError
from bid_ros.core.settings import read_yaml
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.check.finding import CheckFinding, tried
from bid_ros.system.check.limits import limits_finding
from bid_ros.system.description import decided, describe
from bid_ros.system.folder import FILE, POLICY, System, file_beside
from bid_ros.system.preparation import check_arm, check_policy
from bid_ros.system.run import RunArguments
from bid_ros.tasks.registry import kind_of


def folder_findings(system: System, arguments: RunArguments) -> Iterator[CheckFinding]:
    """Yield what the files say; ``system.yaml`` has been read already, or there would be no system."""
    twin = not arguments.robot_ip
    files = [
        _file(system, "task.yaml", lambda _: _task(system)),
        _file(system, "robot.yaml", lambda path: _robot(system, path)),
        _file(system, "cameras.yaml", lambda path: _cameras(system, path, twin)),
        _file(system, "nodes.yaml", lambda _: _parameters(system)),
        _file(system, "view.rviz", lambda path: f"{len(read_yaml(path, 'RViz file') or {})} sections"),
    ]
    said: set[str] = set()
    for found in files:  # one fault, one line: what a file cannot be held against is not its own fault
        if found.state == "ok" or found.measured not in said:
            yield found
        said.add(found.measured)
    if not twin:
        with suppress(BidError):  # of a file, and said above
            yield limits_finding(system)
    driver = tried("driver", lambda: _driver(system, arguments), f"correct {system.folder / FILE}")
    if driver.measured not in said:
        yield driver


def _file(system: System, name: str, read: Callable[[Path], str]) -> CheckFinding:
    return tried(name, lambda: read(system.file(name)), f"correct {file_beside(system.folder / FILE, name)}")


def _task(system: System) -> str:
    system.check_task()
    task, kind = system.task, kind_of(system.task)
    cameras = f"{len(task.cameras)} camera{'s' * (len(task.cameras) != 1)}"
    return f"{task.name} of kind {kind.name}, robot {task.robot}, {cameras}, {task.rate_hz:g} Hz"


def _robot(system: System, path: Path) -> str:
    for twin in (True, False):
        config = load_arm_config(path, "not connected", twin, system.task.robot)
    return f"{type(config).__name__}, of the robot and of its twin"


def _cameras(system: System, path: Path, twin: bool) -> str:
    names = [camera.name for camera in system.task.cameras]
    load_cameras(path, names, not twin)  # what is not used today has to be valid all the same
    found = load_cameras(path, names, twin)
    check_depths(system.task.cameras, found)
    for item in found.values():
        item.check_not_moved()
    return ", ".join(
        f"{item.name}: {item.source} {item.address * (item.source != 'twin')}".rstrip() for item in found.values()
    )


def _parameters(system: System) -> str:
    given = {node: len(parameters) for node, parameters in system.parameters.items() if parameters}
    return f"{sum(given.values())} parameters of {', '.join(given) or 'no node'}"


def _driver(system: System, arguments: RunArguments) -> str:
    """Hold bundle, decoder, device and parameters against the task, as ``bid up`` does before it starts anything."""
    specs = describe(system, replace(arguments, unstaged=True))  # nothing moves
    check_policy(specs)
    check_arm(specs)
    run = decided(system, arguments)
    if run.driver != POLICY:
        return f"device {run.driver}"
    return f"policy {Path(run.policy.bundle).name}, decoder {run.policy.decoder}, N = {run.policy.samples}"

"""Probe of a task's limits: whether a robot has those of its own place, or still those that are shipped."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.task import Task, load_task
from bid_ros.robots.registry import ROBOTS
from bid_ros.system.check.finding import CheckFinding
from bid_ros.system.folder import System, find_system, shipped_systems


def limits_finding(system: System) -> CheckFinding:
    """Return whether table, workspace and start box of a robot are its own, or as they come with bid_ros.

    Raises:
        BidError: the task's file is not valid.
    """
    own = _limits(system.task)
    low, high = (", ".join(f"{value:.3f}" for value in corner) for corner in own["workspace"])
    box = f"workspace [{low}] to [{high}] m"
    same, name = max(
        ((_same(own, shipped), name) for name, shipped in _shipped(system)), key=lambda found: len(found[0])
    )
    if not same:
        return CheckFinding("limits", "ok", box)
    measured = f"{box}; {', '.join(same)} as shipped in {name}"
    return CheckFinding("limits", "warn", measured, f"measure yours: bid calibrate limits {system.folder}")


def _same(own: Mapping[str, Any], shipped: Mapping[str, Any]) -> list[str]:
    return [part for part, value in own.items() if value is not None and value == shipped[part]]


def _limits(task: Task) -> Mapping[str, Any]:
    """Return what ``bid calibrate limits`` measures, by its part."""
    table = next((place for place in task.limits.keep_out if place.name == "table"), None)
    box = task.limits.workspace_min, task.limits.workspace_max
    return {"table": table, "workspace": box, "start": task.start}


def _shipped(system: System) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and limits of every shipped system, and of what new systems of the robot begin as."""
    for name in shipped_systems():
        yield name, _limits(find_system(name).task)
    template = Path(ROBOTS.find(system.task.robot).template)
    folder = template if template.is_absolute() else share("config", str(template))
    try:
        yield f"the template of {system.task.robot}", _limits(load_task(folder / "task.yaml"))
    except BidError:  # of another package
        return

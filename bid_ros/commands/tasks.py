"""Which task a verb works for: the one that was named, or else the one that its input was made for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bid_ros.errors import BidError
from bid_ros.paths import share
from bid_ros.task import Task, load_task


def task_path(name: str) -> Path:
    """Path of a task file given by name or path."""
    path = Path(name)
    return path if path.suffix in (".yaml", ".yml") else share("config", f"{name}.yaml")


def task_of(named: str, made_for: str, what: str) -> Task:
    """Return the task of ``--task``, or the shipped one of the name that ``what`` says it was made for.

    Raises:
        BidError: there is no such task, or its file is invalid.
    """
    if named:
        return load_task(task_path(named))
    try:
        return load_task(task_path(made_for))
    except BidError as error:
        raise BidError(f"{what} is of the task '{made_for}': {error}; name its file with --task") from error


def task_of_bags(named: str, bags: Sequence[Path]) -> Task:
    """Return the task of ``--task``, or that of the runs which the bags, one at least, are of; BidError as below."""
    return task_of(named, "" if named else recorded_task(bags), str(bags[0]))


def recorded_task(bags: Iterable[Path]) -> str:
    """Return the name of the task that runs were of, from the ``run.json`` beside their bags.

    A run that was killed has none; the others speak for it.

    Raises:
        BidError: none says it, or they say different things.
    """
    files = [bag.parent / "run.json" for bag in bags]
    names = {name: file for file in files if (name := _name_in(file))}
    if not names:
        where = f"{files[0]} does not say" if len(files) == 1 else "no run.json beside the bags says"
        raise BidError(f"{where} which task was recorded; give it with --task")
    if len(names) > 1:
        said = " and ".join(f"'{name}' ({file})" for name, file in sorted(names.items()))
        raise BidError(f"the bags are of the tasks {said}; valid are bags of one task, or --task")
    return next(iter(names))


def _name_in(file: Path) -> str:
    try:
        return str(json.loads(file.read_text())["task"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""

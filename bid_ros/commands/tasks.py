"""The task of a verb: the one that ``--task`` names, or else the one that its input was made for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.task import Task, load_task
from bid_ros.recording.events import read_run
from bid_ros.system.folder import shipped_systems
from bid_ros.tasks.base import TaskDescriptor


def task_path(name: str) -> Path:
    """Return the path of a task file, given by its path, a system's folder, or the name of a shipped system or task."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    if (path / "task.yaml").is_file():
        return path / "task.yaml"
    shipped = name in shipped_systems()
    return share("config", name, "task.yaml") if shipped else share("config", f"{name}.yaml")


def task_of(named: str, made_for: str, what: str) -> Task:
    """Return the task of ``--task``, or else the shipped task that ``what`` was made for.

    Raises:
        BidError: there is no such task, or its file is invalid.
    """
    return load_task(_file_of(named, made_for, what))


def task_file_of_bags(named: str, bags: Sequence[Path]) -> Path:
    """Return the task file of ``--task``, or else of the recorded runs (at least one bag). Raises BidError for none."""
    return _file_of(named, "" if named else recorded_task(bags), str(bags[0]))


def _file_of(named: str, made_for: str, what: str) -> Path:
    if named:
        return task_path(named)
    try:
        return task_path(made_for)
    except BidError as error:
        raise BidError(f"{what} is of the task '{made_for}': {error}; name its file with --task") from error


def recorded_task(bags: Sequence[Path], option: str = "--task") -> str:
    """Return the task of recorded runs, from the ``run.json`` beside their bags: its system's folder, or its name.

    A run that was killed has no ``run.json``, nor does an episode with a bag of its own: the metadata of the bag say
    the same.

    Args:
        bags: of the runs.
        option: of the command, with which a person says it, for the sentence.

    Raises:
        BidError: no ``run.json`` names a task, or they name different ones.
    """
    from bid_ros.recording.files import custom_data  # takes a tenth of a second

    names = {}
    for bag in bags:
        home = bag.parent if bag.is_file() else bag  # of the metadata; a file may lie in the folder of its bag
        names[_said(recorded(bag)) or _said(recorded(home)) or _said(custom_data(home))] = bag.parent / "run.json"
    unsaid = names.pop("", None)
    if not names:
        if gone := next((bag for bag in bags if not bag.exists()), None):
            raise BidError(f"bag {gone} does not exist")
        where = f"{unsaid} does not say" if len(set(bags)) == 1 else "no run.json beside the bags says"
        raise BidError(f"{where} which task was recorded; give it with {option}")
    if len(names) > 1:
        said = " and ".join(f"'{name}' ({file})" for name, file in sorted(names.items()))
        raise BidError(f"the bags are of the tasks {said}; valid are bags of one task, or {option}")
    return next(iter(names))


def moving_in(runs: Sequence[Path]) -> str:
    """Return what moves in the task of ``run.json`` files, such as ``cup``; ``target`` if their task is not known."""
    from bid_ros.tasks.registry import kind_of

    said = next(filter(None, (_said(recorded(file)) for file in runs)), "")
    try:
        return kind_of(load_task(task_path(said))).moves if said else TaskDescriptor.moves
    except BidError:
        return TaskDescriptor.moves


def recorded(bag: Path) -> dict[str, Any]:
    """Return the content of the ``run.json`` beside a bag; empty if it is missing or cannot be read."""
    return read_run(bag.parent) or {}


def _said(content: Mapping[str, Any]) -> str:
    folder = str(content.get("system", ""))
    return folder if folder and (Path(folder) / "task.yaml").is_file() else str(content.get("task", ""))

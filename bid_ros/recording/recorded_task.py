"""Which task a bag was recorded for, and whether it is read as another one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml

from bid_ros.core.settings import load_yaml
from bid_ros.core.task import Task
from bid_ros.recording.files import custom_data

NAME: Final = "task"  # a key of a bag that was converted
FILE: Final = "task.yaml"  # a key of a bag that the recorder node wrote


def named_task(custom: Mapping[str, str]) -> str:
    """Return the name of the task that a bag was recorded for; empty where its custom data do not say."""
    if NAME in custom:
        return custom[NAME]
    try:
        found = load_yaml(custom.get(FILE, ""))
    except yaml.YAMLError:
        return ""
    return str(found.get("name", "")) if isinstance(found, dict) else ""


def other_tasks(bags: Iterable[Path], task: Task) -> tuple[str, ...]:
    """Return a sentence for each other task that bags were recorded for: their rows may look right and be wrong."""
    names = [named_task(custom_data(bag)) for bag in bags]
    others = Counter(name for name in names if name not in ("", task.name))
    return tuple(
        f"{count} of {len(names)} bags were recorded for task '{name}', and are read as task '{task.name}'"
        for name, count in sorted(others.items())
    )

"""Whether bags are read as another task than the one that they were recorded for."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bid_ros.core.task import Task
from bid_ros.recording.files import custom_data


def other_tasks(bags: Iterable[Path], task: Task) -> tuple[str, ...]:
    """Return a sentence for each other task that bags were recorded for: their rows may look right and be wrong.

    A bag names its task in its custom data. One that does not, as another recorder's, says nothing.
    """
    names = [custom_data(bag).get("task", "") for bag in bags]
    others = Counter(name for name in names if name not in ("", task.name))
    return tuple(
        f"{count} of {len(names)} bags were recorded for task '{name}', and are read as task '{task.name}'"
        for name, count in sorted(others.items())
    )

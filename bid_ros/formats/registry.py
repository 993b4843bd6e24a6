"""Formats of data sets, by name and by what lies at a path."""

from pathlib import Path
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.registry import Registry, collect
from bid_ros.core.task import Task
from bid_ros.formats.base import Format, Source

FORMATS: Final[Registry[Format]] = Registry(
    "data format", "bid_ros.formats", lambda: collect(__package__, "FORMAT"), RecordingError
)


def format_of(path: Path) -> str:
    """Return the name of the format of the data set at ``path``.

    Raises:
        RecordingError: nothing is there, or no format, or more than one, knows it.
    """
    if not path.exists():
        raise RecordingError(f"data set {path} does not exist")
    found = [name for name in FORMATS.names() if FORMATS.find(name).recognises(path)]
    if len(found) > 1:
        raise RecordingError(f"{path} looks like {' and '.join(found)}; name its format with --from")
    if not found:
        raise RecordingError(f"{path} is no data set that is known; valid formats are {', '.join(FORMATS.names())}")
    return found[0]


def open_source(path: str | Path, task: Task | None = None, name: str = "") -> Source:
    """Open the data set at ``path``.

    Args:
        path: file or folder.
        task: what the rows shall become; bags need it.
        name: its format; empty: the one that recognises it.

    Raises:
        RecordingError: nothing is there, no format knows it, or it is damaged.
    """
    path = Path(path)
    if name and not path.exists():
        raise RecordingError(f"data set {path} does not exist")
    return FORMATS.find(name or format_of(path)).open(path, task)

"""Which process ended a run that nobody asked to end: a note in the run's folder, for whoever writes the results."""

import json
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bid_ros.core.files import replace_text

NOTE: Final = Path("logs", "ended.json")  # in the folder of the run


@dataclass(frozen=True)
class Ended:
    """A process that ended a run before it was complete.

    Attributes:
        name: of the node.
        status: its exit status, minus the number of the signal that killed it; None: it hung, without a sign of life.
    """

    name: str
    status: int | None

    def __str__(self) -> str:
        if self.status is None:
            return f"{self.name} hung"
        killed = ""
        if self.status < 0:
            with suppress(ValueError):  # a real-time signal has no name
                killed = f", killed by {signal.Signals(-self.status).name}"
        return f"{self.name} ended first (status {self.status}{killed})"


def note_end(out: Path, ended: Ended) -> None:
    """Note in the folder of a run who ended it. Call it before any other process is asked to end.

    A full disk loses the note and nothing else.
    """
    with suppress(OSError):
        (out / NOTE).parent.mkdir(parents=True, exist_ok=True)
        replace_text(out / NOTE, json.dumps(asdict(ended)) + "\n")


def forget_end(out: Path) -> None:
    """Remove the note of an earlier run in the same folder."""
    (out / NOTE).unlink(missing_ok=True)


def read_end(out: Path) -> Ended | None:
    """Return who ended a run, None if nobody has noted it."""
    try:
        return Ended(**json.loads((out / NOTE).read_text()))
    except (OSError, ValueError, TypeError):
        return None

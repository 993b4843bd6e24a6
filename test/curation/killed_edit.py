"""Edits a bag and is killed at its Nth step on the disk: KIND BAG OUT N. Exit status 0: the edit has fewer steps."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from bid_ros.curation.edit import merge, split, trim
from bid_ros.curation.trash import delete, restore

STEPS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")
WRITES = os.O_WRONLY | os.O_RDWR


def edit(kind: str, bag: Path, out: Path) -> None:
    """Do one edit."""
    if kind == "delete":
        delete(bag, 1)
    elif kind == "delete whole":
        delete(bag, None)
    elif kind == "restore":
        restore(bag)
    elif kind == "trim":
        trim(bag, 0, 0.0, 0.1, out, {})
    elif kind == "split":
        split(bag, out, {})
    else:
        merge(sorted(bag.glob("episode_*")), out, {})


def main(kind: str, bag: str, out: str, number: str) -> None:
    """Edit, and end at the step."""
    left = int(number)

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    edit(kind, Path(bag), Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])

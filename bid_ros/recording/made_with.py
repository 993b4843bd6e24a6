"""What demonstrations were made with, in a file beside them, so that a later call mixes in no others."""

import hashlib
import json
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text
from bid_ros.core.task import Task
from bid_ros.recording.provenance import installed_version

MADE_WITH: Final = "made_with.json"


def keep_made_with(folder: Path, task: Task, **more: str) -> None:
    """Keep in a new folder what its demonstrations are made with; hold it against what an earlier call kept there.

    Args:
        folder: of the demonstrations, there or not.
        task: what they are of. All of it counts, as limits and objects change what a script does.
        more: what else counts, by name, such as the simulator with its version.

    Raises:
        BidError: the folder's demonstrations were made with something else, or it does not say with what.
    """
    settings = hashlib.sha256(repr(task).encode()).hexdigest()[:12]
    now = {"task": task.name, "settings of the task": settings, "bid_ros": installed_version("bid_ros"), **more}
    if not any(folder.glob("[!.]*")):
        replace_text(folder / MADE_WITH, json.dumps(now, indent=1) + "\n")
        return
    before = _kept(folder / MADE_WITH)
    if before is None:
        raise BidError(
            f"{folder} holds demonstrations, but no {MADE_WITH} says with what they were made, as in older folders; "
            "valid is another --out, or remove it"
        )
    for name in (name for name in {**now, **before} if before.get(name) != now.get(name)):
        made, wanted = (f"'{of[name]}'" if name in of else "the usual" for of in (before, now))
        raise BidError(
            f"{folder} holds demonstrations made with {name} {made}, not {wanted}; valid is another --out, or remove it"
        )


def _kept(file: Path) -> dict[str, str] | None:
    """Return what a file says; None if it is missing or damaged."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None

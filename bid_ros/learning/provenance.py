"""Which source a result was made with."""

from __future__ import annotations

import subprocess
from pathlib import Path


def source_commit() -> str:
    """Return the git commit of the checkout this package is in, ``-dirty`` appended if tracked files differ.

    ``unknown`` where the package is installed without its history.
    """
    root = Path(__file__).resolve().parent
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return result.stdout.strip() or "unknown"

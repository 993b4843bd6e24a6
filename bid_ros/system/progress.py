"""The mark of progress lines: nodes print it, the supervisor looks for it."""

from typing import Final

PROGRESS: Final = "\x1f"
"""First character of a progress line. ``bid up`` lets such lines overwrite each other on a terminal."""

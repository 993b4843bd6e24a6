"""The mark between a node that reports its progress and the supervisor that shows it."""

from __future__ import annotations

from typing import Final

PROGRESS: Final = "\x1f"
"""First character of a progress line; `bid up` lets such lines overwrite each other on a terminal."""

"""Lets a test that plays a robot's controller or its client go first, where the user may."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

OWN_SESSION = """
# Linux divides a busy computer between sessions: a new one begins without the priority of these tests.
from bid_ros.system.priority import raise_priority
raise_priority(0)
"""
"""First lines of a script that leads a session of its own."""


@contextlib.contextmanager
def real_time(priority: int) -> Iterator[None]:
    """Give the calling thread, and those that it starts meanwhile, a real-time priority (1 is the lowest)."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

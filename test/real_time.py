"""Lets a test that plays a robot's controller or its client go first, where the user may."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Self

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


class HoldUps:
    """Measures for how long the computer held this process up: a control thread that should wake every few ms.

    A limit of time that a test sets is one of a computer with time. What the control thread lost is added to it.
    """

    PERIOD_S = 0.005

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self.lost_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._ended.is_set():
            begin = time.monotonic()
            time.sleep(self.PERIOD_S)
            # Half of a period is no hold-up but what a sleep and this interpreter's lock take.
            self.lost_s += max(0.0, time.monotonic() - begin - 1.5 * self.PERIOD_S)

"""Lets a test that plays a robot's controller or its client go first, where the user may."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

OWN_SESSION = """
# Linux divides a busy computer between sessions: a new one begins without the priority of these tests.
from bid_ros.system.priority import raise_priority
raise_priority(0)
"""
"""First lines of a script that leads a session of its own."""


_OTHER = (os.SCHED_OTHER, 0)
_given = [_OTHER]  # policy and priority that the main thread should have; the last one holds


@contextlib.contextmanager
def real_time(priority: int) -> Iterator[None]:
    """Give the calling thread, and those that it starts meanwhile, a real-time priority (1 is the lowest)."""
    _given.append((os.SCHED_RR, priority))
    _schedule(*_given[-1])
    try:
        yield
    finally:
        _given.pop()
        _schedule(*_given[-1])


def take_back_priority() -> None:
    """Take from the calling thread the priority that a library gave it, as libfranka does where it controls.

    The threads that the next test starts would have it, too. Those of Fast DDS wait for a lock in a loop: above all
    others they kept both cores from who held the lock, and the tests stood still for 20 minutes.
    """
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        _schedule(*_given[-1])


def _schedule(policy: int, priority: int) -> None:
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, policy, os.sched_param(priority))


def _waits_ns() -> dict[int, int]:
    """For how long each thread of this process has waited for a core, ns, by its id (proc(5), schedstat)."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it may have ended
            found[int(thread.name)] = int((thread / "schedstat").read_text().split()[1])
    return found


class HoldUps:
    """Measures what the computer kept from this process while tests share it: how long its threads waited for a core.

    A limit of time that a test sets is one of a computer with time. Waits for a lock or an answer do not count, so a
    defect is found out on a busy computer, too. A control thread that wakes every few ms stands for the processes that
    the test waits for.
    """

    PERIOD_S = 0.005

    def __enter__(self) -> Self:
        self._begin, self._before = time.monotonic(), _waits_ns()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._wake, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def lost_s(self) -> float:
        """Sum of the waits since the beginning, s."""
        return sum(waited - self._before.get(thread, 0) for thread, waited in _waits_ns().items()) / 1e9

    def seconds(self) -> float:
        """Return the time since the beginning without what the computer kept, s."""
        return time.monotonic() - self._begin - self.lost_s

    def _wake(self) -> None:
        while not self._ended.wait(self.PERIOD_S):
            pass


def wait_until(condition: Callable[[], object], seconds: float = 5.0, what: str = "the condition") -> None:
    """Return as soon as ``condition`` holds; fail after ``seconds`` in which the computer had time for this process."""
    with HoldUps() as since:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline or since.seconds() < seconds, f"waited {seconds} s for {what}"
            time.sleep(0.002)

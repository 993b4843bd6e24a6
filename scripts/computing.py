"""Processes that compute beside what a script measures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def computing(count: int, niceness: int = 0, apart: bool = False) -> Iterator[None]:
    """Let so many processes compute until the block ends.

    Args:
        count: number of processes.
        niceness: added to that of this process.
        apart: each has a session of its own, between which Linux shares a busy computer first.
    """
    command = [sys.executable, "-S", "-c", "while True: pass"]
    nicer = partial(os.nice, niceness)
    crowd = [subprocess.Popen(command, start_new_session=apart, preexec_fn=nicer) for _ in range(count)]
    try:
        yield
    finally:
        for process in crowd:
            process.kill()
            process.wait()

"""Share of a busy computer that a process gets."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

AUTOGROUP: Final = Path("/proc/self/autogroup")
TASKS: Final = Path("/proc/self/task")


def raise_thread_priority(by: int) -> None:
    """Lower the niceness of the calling thread only, if the user is allowed to. On Linux each thread has its own."""
    with suppress(PermissionError):
        os.nice(-by)


def raise_priority(by: int, every_thread: bool = False) -> None:
    """Lower the niceness of this process by ``by``, if the user is allowed to.

    Linux divides the processor between sessions first, each with a niceness of its own (autogroup, sched(7)). The
    niceness of processes counts only inside a session. So if this process leads its session, the session gets the
    niceness of the process. Every process that ``bid up`` starts leads its session.

    Args:
        by: steps of niceness. 0 only passes the niceness on to the session.
        every_thread: of all threads that run already, too. Later ones inherit the niceness of who starts them.
    """
    raise_thread_priority(by)  # of the main thread, which is that of the process
    if every_thread:
        others = {int(task.name) for task in TASKS.iterdir()} - {threading.get_native_id()}
        for thread in others:
            with suppress(PermissionError, ProcessLookupError):  # it may have ended
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) - by)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # without autogroups this file does not exist, and the niceness counts everywhere
            AUTOGROUP.write_text(str(os.nice(0)))

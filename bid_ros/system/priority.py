"""Share of a busy computer that a process gets."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

AUTOGROUP: Final = Path("/proc/self/autogroup")


def raise_thread_priority(by: int) -> None:
    """Lower the niceness of the calling thread only, if the user is allowed to. On Linux each thread has its own."""
    with suppress(PermissionError):
        os.nice(-by)


def raise_priority(by: int) -> None:
    """Lower the niceness of this process by ``by``, if the user is allowed to.

    Linux divides the processor between sessions first, each with a niceness of its own (autogroup, sched(7)). The
    niceness of processes counts only inside a session. So if this process leads its session, the session gets the
    niceness of the process. Every process that ``bid up`` starts leads its session.

    Args:
        by: steps of niceness. 0 only passes the niceness on to the session.
    """
    raise_thread_priority(by)  # of the main thread, which is that of the process
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # without autogroups this file does not exist, and the niceness counts everywhere
            AUTOGROUP.write_text(str(os.nice(0)))

"""How much of a busy computer a process gets."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

AUTOGROUP: Final = Path("/proc/self/autogroup")


def raise_priority(by: int) -> None:
    """Lower the niceness of this process by ``by``, where the user may.

    Linux shares the processor out between sessions first, each with a niceness of its own (autogroup, sched(7)), and
    by the niceness of processes only inside a session. So where this process leads its session, as every one that
    ``bid up`` starts does, the session gets the process's niceness.

    Args:
        by: 0 only passes the niceness on to the session.
    """
    with suppress(PermissionError):
        os.nice(-by)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # without autogroups there is no such file, and the niceness counts everywhere
            AUTOGROUP.write_text(str(os.nice(0)))

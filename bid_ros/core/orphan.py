"""A process whose parent dies is woken, also if it is frozen, so that it can end in order."""

import ctypes
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def wake_when_orphaned() -> None:
    """Let the kernel wake this process when the parent that started it ends, however that ends.

    A process that somebody has frozen (SIGSTOP) notices nothing. If nobody is left who could wake it, it stays for
    ever. The signal is SIGCONT: to a process that runs it says nothing.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)

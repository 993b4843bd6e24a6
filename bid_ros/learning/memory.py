"""Keeps memory that PyTorch frees and allocates again in every training step."""

import ctypes
import sys
from typing import Final

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD: Final = -1
M_TOP_PAD: Final = -2
M_MMAP_MAX: Final = -4
LARGEST: Final = 2**31 - 1


def keep_freed_memory() -> bool:
    """Tell the C library not to return freed memory to the system. Return whether it accepted.

    A training step on the CPU allocates and frees the same tens of megabytes again and again. The kernel clears every
    returned page when it is next used, which took up to half of a step's time. The setting holds for the rest of the
    process. It works with glibc only; elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, LARGEST), (M_TOP_PAD, 2**26))
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings)

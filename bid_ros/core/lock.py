"""A lock on a folder, so that two programs do not write into it at once."""

import fcntl
import os
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

LOCK: Final = ".lock"


def lock_folder(folder: Path) -> int:
    """Return the descriptor of a lock on a folder, which is made. It ends with this process, however that ends.

    Raises:
        BidError: the folder cannot be made, or another process holds its lock.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BidError(f"nothing can be written to {folder}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(lock, 20).decode(errors="replace").strip()
        os.close(lock)
        raise BidError(
            f"process {holder} writes to {folder}; valid is another folder, or to end that process first"
        ) from error
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def check_unlocked(folder: Path) -> None:
    """Raise BidError if another process holds the lock of a folder."""
    if (folder / LOCK).exists():
        os.close(lock_folder(folder))

"""Files that are replaced whole: a reader sees the old content or all of the new one."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

OF_A_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What the system says of a disk that takes no more; it does not say of which file."""


def check_folder(folder: Path, option: str = "--out") -> None:
    """Raise BidError if nothing can be written to a folder, there or not. So long work does not end in that error.

    Args:
        folder: of results.
        option: that named it.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "cannot be written to" if there.is_dir() else "is a file"
        raise BidError(f"{option} is {folder}, but {there} {why}; valid is a folder, there or to be made")


@contextmanager
def replacing(path: Path, suffix: str = "") -> Iterator[Path]:
    """Give the path of a file to write, which takes the place of ``path`` unless the block raises.

    Args:
        path: file to replace; its folder is made.
        suffix: of the file to write, for writers that go by it.

    Raises:
        OSError: it cannot be written; of a full disk too, the error names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part{suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        if error.errno in OF_A_DISK and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        part.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as the whole content of a file."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")

"""A node goes on when its output cannot be written."""

import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, TextIO


class _Unbroken(FileIO):
    """Drops output when the reader is gone, or the terminal or the disk takes no more."""

    def write(self, data: Any, /) -> int:
        try:
            written: int | None = super().write(data)  # None: it is full and does not block
        except OSError:
            written = None
        return len(data) if written is None else written


def keep_printing() -> None:
    """Go on when nobody reads the standard output or standard error any more: the output is dropped.

    The front end reads what its nodes print. If it is killed, a node has steps to do until its end: an episode is ended
    and recorded. ``print`` would raise BrokenPipeError in the middle of them.
    """
    sys.stdout, sys.stderr = _unbroken(sys.stdout), _unbroken(sys.stderr)


def _unbroken(stream: TextIO) -> TextIO:
    stream.flush()
    file = BufferedWriter(_Unbroken(stream.fileno(), "w", closefd=False))
    return TextIOWrapper(file, stream.encoding, stream.errors, line_buffering=True, write_through=True)

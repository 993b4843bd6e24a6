"""A terminal whose keys are read one by one, without waiting and without echo."""

import contextlib
import errno
import os
import re
import termios

from bid_ros.core.errors import BidError

ARROWS = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left"}
SS3 = {b"\x1bO" + name[2:]: arrow for name, arrow in ARROWS.items()}  # of terminals in application mode
INCOMPLETE = re.compile(rb"\x1b(O|\[[0-?]*[ -/]*)")  # ECMA-48; a lone escape is a key of its own


class Terminal:
    """The keys of a terminal. Ctrl-C and window sizes stay with the program in its foreground.

    Args:
        path: device of the terminal, such as ``/dev/pts/3``; the command ``tty`` prints it.

    Raises:
        BidError: the path is not a terminal that can be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            # Not as the controlling terminal: its owner keeps it.
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise BidError(f"terminal {path} cannot be opened: {error.strerror}; valid is what `tty` prints") from error
        try:
            self._before = termios.tcgetattr(self._file)
        except termios.error as error:
            os.close(self._file)
            raise BidError(f"{path} is not a terminal; valid is what `tty` prints") from error
        self._tail = b""
        now = termios.tcgetattr(self._file)
        now[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._file, termios.TCSANOW, now)

    def typed(self) -> list[str]:
        """Return what was typed since the last call: characters, and arrows as up, down, left, right.

        Raises:
            BidError: the terminal is gone.
        """
        try:
            typed = os.read(self._file, 4096)
        except BlockingIOError:
            return []
        except OSError as error:
            raise BidError(f"terminal {self._path} is gone ({errno.errorcode.get(error.errno or 0)})") from error
        if not typed:
            raise BidError(f"terminal {self._path} is closed")
        keys, self._tail = split_keys(self._tail + typed)
        return keys

    def show(self, text: str) -> None:
        """Write to the terminal; one that takes nothing is no error."""
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)

    def close(self) -> None:
        """Give the terminal back as it was."""
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(self._file, termios.TCSANOW, self._before)
        os.close(self._file)


def split_keys(typed: bytes) -> tuple[list[str], bytes]:
    """Return the keys of what a terminal sent, and the begin of a sequence whose rest has not arrived.

    Sequences of other special keys are left out.
    """
    keys: list[str] = []
    at = 0
    while at < len(typed):
        if INCOMPLETE.fullmatch(typed, at):
            return keys, typed[at:]
        if typed[at] != 0x1B:
            keys.append(typed[at : at + 1].decode("latin-1"))
            at += 1
            continue
        arrow = (ARROWS | SS3).get(typed[at : at + 3])
        if arrow is not None:
            keys.append(arrow)
        at += _length(typed, at)
    return keys, b""


def _length(typed: bytes, at: int) -> int:
    """Return how many bytes the escape sequence at ``at`` has (ECMA-48: a CSI ends with a byte from 0x40 to 0x7E)."""
    if typed[at + 1 : at + 2] == b"O":
        return 3
    if typed[at + 1 : at + 2] != b"[":
        return 1
    end = at + 2
    while end < len(typed) and not 0x40 <= typed[end] <= 0x7E:
        end += 1
    return end + 1 - at

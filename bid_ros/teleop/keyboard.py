"""Teleoperation by the keys of a terminal: a key moves the tool while it is held, or a moment if it is tapped."""

import contextlib
import errno
import os
import re
import termios
from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import AXES, Command, DeviceDescriptor
from bid_ros.teleop.human import Controller, HumanDevice

ARROWS = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left"}
ARROWS |= {b"\x1bO" + name[2:]: arrow for name, arrow in ARROWS.items()}  # of terminals in application mode
# A key, or the whole sequence of one: a CSI ends with a byte from 0x40 to 0x7E (ECMA-48).
KEY = re.compile(rb"\x1bO.?|\x1b\[[^@-~]*[@-~]?|.", re.DOTALL)
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
    for found in KEY.finditer(typed):
        if INCOMPLETE.fullmatch(typed, found.start()):
            return keys, typed[found.start() :]
        key = found.group()
        if key[0] != 0x1B:
            keys.append(key.decode("latin-1"))
        elif key in ARROWS:
            keys.append(ARROWS[key])
    return keys, b""


KEYS: Final = {
    key: (axis, sign)
    for axis, towards, back in (
        ("x", ("w", "up"), ("s", "down")),
        ("y", ("a", "left"), ("d", "right")),
        ("z", ("r",), ("f",)),
        ("yaw", ("q",), ("e",)),
        ("roll", ("u",), ("o",)),
        ("pitch", ("i",), ("k",)),
    )
    for keys, sign in ((towards, 1), (back, -1))
    for key in keys
}
ENDS: Final = {"\n": "success", "\r": "success", "x": "failure", "\x7f": "discard", "\b": "discard"}
GRIPPER, SLOWER, FASTER = " ", "-", "+"
NOTE = "t"
LONGEST: Final = 500  # characters of a note
FACTOR: Final = 1.5
SLOWEST: Final = 0.05
HELP: Final = """\
  w s / up down     x: away from the base, towards it     a d / left right  y: left, right
  r f               z: up, down                           q e               turn about z
  space             gripper: close, open                  - +               slower, faster
  enter             the episode is a success              x  backspace      a failure, one to discard
  t TEXT enter      a note about the episode; the tool holds while you type
  u o  i k          tilt (axes roll and pitch are locked unless `locked` says otherwise)
A key moves the tool while it is held. Let go, and the tool stops."""


@settings
class KeyboardSettings:
    """Settings of the keyboard.

    Attributes:
        terminal: device of the terminal whose keys are read. ``bid teleop`` names its own.
        linger_s: s for which one press moves the tool. It must be longer than the terminal's time between two repeats.
    """

    terminal: str = ""
    linger_s: Annotated[float, Field(ge=0.05, le=0.5)] = 0.15


class Keyboard(Controller):
    """A keyboard. A terminal tells of presses and repeats, never of a release: so a press lasts ``linger_s``.

    That is the dead man's switch too. Nothing moves unless keys keep coming.

    Args:
        options: terminal and times.

    Raises:
        BidError: there is no such terminal.
    """

    def __init__(self, options: KeyboardSettings) -> None:
        if not options.terminal:
            raise BidError("the keyboard has no terminal; valid is what `tty` prints, and `bid teleop` names its own")
        self._terminal = Terminal(options.terminal)
        self._linger_ns = round(options.linger_s * NANOSECONDS)
        self._until_ns = dict.fromkeys(AXES, 0)
        self._sign = dict.fromkeys(AXES, 0)
        self._speed = 1.0
        self._typed: str | None = None

    def poll(self, now_ns: int) -> Command:
        """Read what was typed. Raises BidError if the terminal is gone."""
        toggle, mark, note = False, "", ""
        for key in self._terminal.typed():
            if self._typed is not None:
                note = self._type(key) or note
            elif key == NOTE:
                self._type("")
            elif key.lower() in KEYS:
                axis, sign = KEYS[key.lower()]
                self._until_ns[axis], self._sign[axis] = now_ns + self._linger_ns, sign
            elif key == GRIPPER:
                toggle = not toggle
            elif key in ENDS:
                mark = ENDS[key]
            elif key in (SLOWER, FASTER, "="):
                factor = 1 / FACTOR if key == SLOWER else FACTOR
                self._speed = min(1.0, max(SLOWEST, self._speed * factor))
        pressed = [now_ns < self._until_ns[axis] for axis in AXES]
        twist = self._speed * np.array([self._sign[axis] * held for axis, held in zip(AXES, pressed, strict=True)])
        return Command(any(pressed), twist, toggle=toggle, mark=mark, note=note)

    def _type(self, key: str) -> str:
        """Take a key of a note, whose keys move nothing; return the note when it is complete."""
        text = self._typed or ""
        if key in ("\n", "\r"):
            self._typed = None
            self._terminal.show("\n")
            return text.strip()
        erased = key in ("\x7f", "\b")
        text = text[:-1] if erased else (text + (key if len(key) == 1 and key.isprintable() else ""))[:LONGEST]
        self._typed = text
        self._terminal.show(f"\r\x1b[Knote: {text}")
        return ""

    def begin(self, now_ns: int) -> None:
        """Forget the keys that were typed before. Raises BidError if the terminal is gone.

        A note that is being typed goes on: the rest of it must not drive the arm.
        """
        self.poll(now_ns)
        self._until_ns = dict.fromkeys(AXES, now_ns)

    def close(self) -> None:
        """Give the terminal back."""
        self._terminal.close()


def _build(task: Task, options: KeyboardSettings) -> HumanDevice:
    # The path of a closed terminal may become that of another one, whose keys are not meant for the arm.
    return HumanDevice(task, lambda: Keyboard(options), reopens=False)


def _complete(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Name the terminal of this program. Raises BidError if there is none."""
    if given.get("terminal"):
        return given, ""
    try:
        return {**given, "terminal": os.ttyname(0)}, ""
    except OSError as error:
        raise BidError("the keyboard needs a terminal, but standard input is none; run this in a terminal") from error


DEVICE = DeviceDescriptor("keyboard", _build, settings=KeyboardSettings, rate_hz=40.0, help=HELP, complete=_complete)

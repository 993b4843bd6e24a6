"""Teleoperation by a gamepad of this computer, read through evdev."""

import contextlib
import errno
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.core.extras import install_line
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import Command, DeviceDescriptor
from bid_ros.teleop.human import Controller, HumanDevice
from bid_ros.teleop.joy import HELP, Pad, PadSettings
from bid_ros.teleop.learn import PadLesson, PadState

# Codes of Linux (input-event-codes.h) and what they are on a gamepad (the kernel's gamepad API).
STICKS: Final = {0x00: "left_x", 0x01: "left_y", 0x03: "right_x", 0x04: "right_y", 0x10: "hat_x", 0x11: "hat_y"}
BUTTONS: Final = {
    0x130: "south",
    0x131: "east",
    0x133: "north",
    0x136: "left_bumper",
    0x13A: "select",
    0x13B: "start",
}
# Without its driver a pad numbers its buttons in turn, and so has a BTN_C, which no driver's pad has. Sony's then are:
NUMBERED: Final = 0x132
PAD_KEYS: Final = range(0x120, 0x140)  # of joysticks and gamepads
SONY: Final = 0x054C
SONY_BUTTONS: Final = {
    "south": 0x131,
    "east": 0x132,
    "north": 0x133,
    "left_bumper": 0x134,
    "select": 0x138,
    "start": 0x139,
}
SONY_AXES: Final = {"right_x": 0x02, "right_y": 0x05}
NO_EVDEV: Final = (
    "a gamepad needs the package evdev, which has no wheel and is compiled; install it with: "
    f"apt-get install g++ python{sys.version_info[0]}.{sys.version_info[1]}-dev, then {install_line('teleop')}"
)
KEY_EVENT, AXIS_EVENT, SYNC_EVENT, DROPPED = 0x01, 0x03, 0x00, 3


@settings
class GamepadSettings(PadSettings):
    """Settings of a gamepad.

    Attributes:
        path: its device, such as ``/dev/input/event5``; empty: the first gamepad that is found.
    """

    path: str = ""


class EventPad:
    """Keeps the state of a gamepad from its events.

    Args:
        ranges: (smallest, largest) value by code of each axis, as the device says.
        sticks, buttons: what each code is.
    """

    def __init__(
        self,
        ranges: dict[int, tuple[int, int]],
        sticks: Mapping[int, str] = STICKS,
        buttons: Mapping[int, str] = BUTTONS,
    ) -> None:
        self._ranges, self._sticks, self._buttons = ranges, sticks, buttons
        self.axes = dict.fromkeys(STICKS.values(), 0.0)
        self.buttons = dict.fromkeys(BUTTONS.values(), False)

    def take(self, kind: int, code: int, value: int) -> None:
        """Take one event: its type, code and value."""
        if kind == KEY_EVENT and code in self._buttons:
            self.buttons[self._buttons[code]] = value != 0
        elif kind == AXIS_EVENT and code in self._sticks and code in self._ranges:
            low, high = self._ranges[code]
            self.axes[self._sticks[code]] = _share(value, low, high)
        elif kind == SYNC_EVENT and code == DROPPED:
            # What was lost may be the release of the dead man's switch.
            self.buttons = dict.fromkeys(self.buttons, False)


def _evdev() -> Any:
    try:
        import evdev
    except ImportError as error:
        raise BidError(NO_EVDEV) from error
    return evdev


def learn_gamepad(options: GamepadSettings, say: Callable[[str], None]) -> dict[str, dict[str, int]]:
    """Ask a person for every button and axis of a gamepad; return the settings that name them.

    Args:
        options: which gamepad.
        say: tells the person what to press.

    Raises:
        BidError: there is none, it may not be read, or it was unplugged.
    """
    device = _find(_evdev(), options.path)
    say(f"gamepad '{device.name}' at {device.path}; Ctrl-C ends")

    def read() -> PadState:
        try:
            infos = {code: device.absinfo(code) for code, _ in _capabilities(device).get(AXIS_EVENT, [])}
            pressed = frozenset(device.active_keys())
        except OSError as error:
            raise BidError(f"gamepad {device.name} at {device.path} is gone") from error
        return PadState(pressed, {code: _share(info.value, info.min, info.max) for code, info in infos.items()})

    try:
        return PadLesson(read, say).learn()
    finally:
        device.close()


def _share(value: int, low: int, high: int) -> float:
    """Return where a value is between the ends of its range, -1 to 1."""
    return 2.0 * (value - low) / max(high - low, 1) - 1.0


class Gamepad(Controller):
    """A gamepad of this computer.

    Args:
        options: which one, and how it feels.

    Raises:
        BidError: there is none, or it may not be read.
    """

    def __init__(self, options: GamepadSettings) -> None:
        self._device = _find(_evdev(), options.path)
        ranges = {code: (info.min, info.max) for code, info in _capabilities(self._device).get(AXIS_EVENT, [])}
        keys, device = _capabilities(self._device).get(KEY_EVENT, []), self._device
        layout = layout_of(device.name, device.info.vendor, keys, device.active_keys(), options)
        self._events, self._pad = EventPad(ranges, *layout), Pad(options)

    def poll(self, now_ns: int) -> Command:
        """Read the events since the last call. Raises BidError if the gamepad was unplugged."""
        for event in self._new():
            self._events.take(event.type, event.code, event.value)
        axes = self._events.axes
        # Up and left are negative on a Linux gamepad.
        return self._pad.command({name: -value for name, value in axes.items()}, self._events.buttons)

    def close(self) -> None:
        """Release the device."""
        self._device.close()

    def _new(self) -> Iterable[Any]:
        try:
            return list(self._device.read())
        except BlockingIOError:
            return []
        except OSError as error:
            why = errno.errorcode.get(error.errno or 0, "error")
            raise BidError(f"gamepad {self._device.name} at {self._device.path} is gone ({why})") from error


def layout_of(
    name: str, vendor: int, keys: Collection[int], pressed: Sequence[int], options: PadSettings
) -> tuple[dict[int, str], dict[int, str]]:
    """Return what the codes of a gamepad's axes and buttons are.

    Args:
        name, vendor: of the gamepad, as USB has them.
        keys: codes of its buttons.
        pressed: those that are pressed now.
        options: may name them.

    Raises:
        BidError: nobody knows.
    """
    axes, buttons = {name: code for code, name in STICKS.items()}, {name: code for code, name in BUTTONS.items()}
    if NUMBERED in keys and vendor == SONY:
        axes, buttons = axes | SONY_AXES, SONY_BUTTONS
    elif not options.buttons and (NUMBERED in keys or not BUTTONS.keys() <= set(keys)):
        down = ", ".join(map(str, pressed)) or "none"
        raise BidError(
            f"nobody knows which button is which of gamepad '{name}' with buttons {', '.join(map(str, sorted(keys)))} "
            f"(pressed now: {down}); valid is the setting `buttons` with {', '.join(BUTTONS.values())}, each a code: "
            "bid teleop --learn asks for them"
        )
    axes, buttons = axes | options.axes, options.buttons or buttons
    return {code: axis for axis, code in axes.items()}, {code: button for button, code in buttons.items()}


def _find(evdev: Any, path: str) -> Any:
    """Return the device at ``path``, or the first gamepad. Raises BidError."""
    if path:
        try:
            return evdev.InputDevice(path)
        except OSError as error:
            raise BidError(f"gamepad {path} cannot be opened: {error.strerror}") from error
    listed = evdev.list_devices()
    for name in listed:
        with contextlib.suppress(OSError, BidError):  # it was unplugged meanwhile
            device = evdev.InputDevice(name)
            if any(code in PAD_KEYS for code in _capabilities(device).get(KEY_EVENT, [])):
                return device
            device.close()
    raise BidError(
        f"no gamepad was found among {len(listed)} readable input devices; plug one in, "
        "or let this user read it: add them to the group 'input'"
    )


def _capabilities(device: Any) -> dict[int, Any]:
    """Return what a device has, by type of event. Raises BidError if it is gone."""
    try:
        found: dict[int, Any] = device.capabilities()
        return found
    except OSError as error:
        raise BidError(f"gamepad {device.path} is gone: {error.strerror}") from error


def _build(task: Task, options: GamepadSettings) -> HumanDevice:
    return HumanDevice(task, lambda: Gamepad(options))


DEVICE = DeviceDescriptor("gamepad", _build, settings=GamepadSettings, rate_hz=40.0, help=HELP)

"""Cameras of Linux (Video4Linux): which there are, what they offer, and their controls. OpenCV reads their images."""

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bid_ros.cameras.base import LightControl
from bid_ros.cameras.modes import NEAR_HZ, Mode, ModeRange, Size, on_grid
from bid_ros.core.errors import CameraError

CLASS: Final = Path("/sys/class/video4linux")
BY_ID: Final = Path("/dev/v4l/by-id")

_Request = tuple[int, struct.Struct]


def _request(number: int, size: int, direction: int = 3) -> int:
    return direction << 30 | size << 16 | ord("V") << 8 | number


# Of linux/videodev2.h: request, and the layout of its structure.
_QUERYCAP: Final = (_request(0, 104, 2), struct.Struct("=16s32s32s3I3I"))
_ENUM_FMT: Final = (_request(2, 64), struct.Struct("=3I32s5I"))
_FRAMESIZES: Final = (_request(74, 44), struct.Struct("=11I"))
_FRAMEINTERVALS: Final = (_request(75, 52), struct.Struct("=13I"))
_G_CTRL: Final = (_request(27, 8), struct.Struct("=Ii"))
_S_CTRL: Final = (_request(28, 8), struct.Struct("=Ii"))
_QUERYCTRL: Final = (_request(36, 68), struct.Struct("=II32s4i3I"))
_CAPTURE: Final = 1  # of capabilities, and the type of a buffer
_DISCRETE: Final = 1
_DISABLED: Final = 1
_CONTROLS: Final = {"exposure": 0x9A0902, "gain": 0x980913, "white_balance": 0x98091A}
_EXPOSURE_AUTO, _MANUAL, _AUTOMATIC = 0x9A0901, 1, (3, 0)  # aperture priority, which webcams have; all automatic
_AUTOGAIN: Final = 0x980912
_AUTO_WHITE: Final = 0x98090C
_SWITCHES: Final = {"exposure": _EXPOSURE_AUTO, "gain": _AUTOGAIN, "white_balance": _AUTO_WHITE}


@dataclass(frozen=True)
class VideoNode:
    """A device of Video4Linux.

    Attributes:
        path: such as ``/dev/video0``; another one after it was plugged in again.
        lasting: path that stays the same, if udev made one; otherwise ``path``.
        name: what the driver calls it.
        serial: serial number; empty: it has none.
        vendor: USB vendor, four hexadecimal digits.
        speed: of its USB connection, Mbit/s; empty: it is not on USB.
    """

    path: str
    lasting: str
    name: str
    serial: str = ""
    vendor: str = ""
    speed: str = ""


def video_nodes(root: Path = CLASS, by_id: Path = BY_ID) -> list[VideoNode]:
    """Return the devices that the kernel lists, also those that deliver no images, such as their metadata."""
    return [
        _node(folder, by_id) for folder in sorted(root.glob("video*"), key=lambda item: (len(item.name), item.name))
    ]


def _node(folder: Path, by_id: Path) -> VideoNode:
    path, usb = f"/dev/{folder.name}", (folder / "device").resolve().parent
    lasting = next((str(link) for link in sorted(by_id.glob("*")) if os.path.realpath(link) == path), path)
    return VideoNode(path, lasting, _line(folder / "name"), *(_line(usb / n) for n in ("serial", "idVendor", "speed")))


def _line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def node_path(address: str) -> str:
    """Return the path under /dev of a device that is named by its number, its path, or a link to it."""
    return os.path.realpath(f"/dev/video{address}" if address.isdigit() else address)


class VideoDevice:
    """Asks a device. Another program may read its images meanwhile.

    Args:
        path: such as ``/dev/video0``.

    Raises:
        CameraError: it does not open.
    """

    def __init__(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise CameraError(
                f"camera '{path}' does not open: {error.strerror}; valid is a device that is there"
            ) from error
        self._path = path

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the device."""
        os.close(self._file)

    def captures(self) -> bool:
        """Whether it delivers images."""
        answer = self._ask(_QUERYCAP)
        return bool(answer and int(answer[5]) & _CAPTURE)

    def modes(self) -> Iterator[tuple[str, Mode | ModeRange]]:
        """Yield format of pixels, such as ``MJPG``, and sizes and rates that it offers."""
        for pixels, name, low, high, step in self._sizes():
            rates = [*self._rates(pixels, *low), *(self._rates(pixels, *high) if high != low else ())]
            if low != high and rates:
                yield name, ModeRange(low, high, step, (min(rates)[0], max(fast for _, fast in rates)))
                continue
            for slow, fast in rates:
                yield name, (*low, fast) if slow == fast else ModeRange(low, high, step, (slow, fast))

    def fitting(self, size: Size, rate: float | None) -> Iterator[tuple[str, float]]:
        """Yield format of pixels and rate of each mode of a size, px; without a rate the highest of each."""
        for pixels, name, low, high, step in self._sizes():
            for slow, fast in self._rates(pixels, *size) if on_grid(size, low, high, step) else ():
                if rate is None or slow - NEAR_HZ < rate < fast + NEAR_HZ:
                    yield name, fast if rate is None else rate

    def _sizes(self) -> Iterator[tuple[int, str, Size, Size, Size]]:
        """Yield format of pixels, its name, and least size, greatest and step; one size has no step."""
        for _, _, _, _, pixels, *_ in self._each(_ENUM_FMT, _CAPTURE, 0, b"", 0, 0, 0, 0, 0):
            name = struct.pack("<I", pixels).decode(errors="replace").strip()
            for found in self._each(_FRAMESIZES, pixels, *[0] * 9):
                if found[2] != _DISCRETE:
                    wide, high = found[3:6], found[6:9]
                    low, most, step = zip(wide, high, strict=True)
                    yield pixels, name, low, most, step
                    break  # there is one range at most
                yield pixels, name, found[3:5], found[3:5], (0, 0)

    def _rates(self, pixels: int, width: int, height: int) -> Iterator[tuple[float, float]]:
        """Yield lowest and highest rate; of a single one twice the same. Intervals are fractions of a second."""
        for found in self._each(_FRAMEINTERVALS, pixels, width, height, *[0] * 9):
            if found[4] != _DISCRETE:
                ends = [under / over for over, under in (found[7:9], found[5:7]) if over]
                if len(ends) == 2:
                    yield round(ends[0], 3), round(ends[1], 3)
                break
            if found[5]:
                rate = round(found[6] / found[5], 3)
                yield rate, rate

    def controls(self) -> Mapping[str, LightControl]:
        """Return its controls of light by name."""
        found = {}
        for name, number in _CONTROLS.items():
            told = self._ask(_QUERYCTRL, number, 0, b"", *[0] * 7)
            now = self._ask(_G_CTRL, number, 0)
            if told and now and not told[7] & _DISABLED:
                found[name] = LightControl(now[1], told[3], told[4])
        return found

    def automatic(self) -> None:
        """Switch its automatics on."""
        for value in _AUTOMATIC:
            if self._set(_EXPOSURE_AUTO, value):
                break
        self._set(_AUTOGAIN, 1)
        self._set(_AUTO_WHITE, 1)

    def hold(self, values: Mapping[str, float]) -> None:
        """Switch automatics off and set controls. Raises CameraError if it refuses a value."""
        for name in values:
            self._set(_SWITCHES[name], _MANUAL if name == "exposure" else 0)
        for name, value in values.items():
            if not self._set(_CONTROLS[name], round(value)):
                raise CameraError(
                    f"camera '{self._path}' does not take {name} {value:g}; bid cameras lists what it has"
                )

    def _set(self, control: int, value: int) -> bool:
        return bool(self._ask(_S_CTRL, control, value))

    def _each(self, what: _Request, *rest: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the answers to a request whose first number counts, until there is none; ``rest`` follows it."""
        at = 0
        while answer := self._ask(what, at, *rest):
            yield answer
            at += 1

    def _ask(self, what: _Request, *values: Any) -> tuple[Any, ...]:
        """Return what the device answers to a request; empty: it refuses, as it does at the end of a list."""
        request, layout = what
        data = bytearray(layout.pack(*values) if values else bytes(layout.size))
        with suppress(OSError):
            ioctl(self._file, request, data)
            return layout.unpack(data)
        return ()

"""The interface of camera devices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import CameraError
from bid_ros.core.settings import list_of, settings


@dataclass(frozen=True)
class Frame:
    """One image.

    Attributes:
        stamp_ns: time of the image, ROS system time (nanoseconds since 1970).
        image: ``(height, width, 3)`` uint8, rgb.
    """

    stamp_ns: int
    image: NDArray[np.uint8]


@settings(error=CameraError)
class LockedLight:
    """Values of a camera that no automatic changes any more, as ``bid cameras --lock`` found them.

    Attributes:
        serial: serial number of the device whose values these are; another device is refused. Empty: it has none.
        exposure: in the unit of the device: 100 us of a UVC camera, and of most RealSense cameras.
        gain: in the unit of the device.
        white_balance: K.
    """

    serial: str = ""
    exposure: Annotated[float, Field(ge=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None
    white_balance: Annotated[float, Field(ge=0)] | None = None

    def values_for(self, serial: str, what: str) -> dict[str, float]:
        """Return the values by name. Raises CameraError if they are of another device than ``what``, of ``serial``."""
        if self.serial and self.serial != serial:
            raise CameraError(
                f"{what} has serial number '{serial}', but its light was locked on '{self.serial}'; "
                "valid is the same device, or a new lock: bid cameras SYSTEM CAMERA --lock"
            )
        named = {"exposure": self.exposure, "gain": self.gain, "white_balance": self.white_balance}
        return {name: value for name, value in named.items() if value is not None}


@settings(error=CameraError)
class Capture:
    """What a device is asked for. None: its own choice.

    Attributes:
        size: width and height of its images, px.
        rate_hz: images a second.
        locked: exposure, gain and white balance.
    """

    size: Annotated[tuple[int, int], list_of(2, "integer")] | None = None
    rate_hz: Annotated[float, Field(gt=0, le=1000)] | None = None
    locked: LockedLight | None = None


class Camera(Protocol):
    """A camera device, used by one thread: ``open``, ``read`` in a loop, ``close``. It may be opened again."""

    def open(self) -> None:
        """Open the device.

        Raises:
            CameraError: the device does not exist, is busy, or its driver is not installed.
        """

    def read(self) -> Frame | None:
        """Wait for the next frame, about half a second at most. None: no frame came in that time.

        Raises:
            CameraError: the device was lost or is not open.
        """

    def close(self) -> None:
        """Release the device. A second call does nothing."""


@dataclass(frozen=True)
class LightControl:
    """One of exposure, gain and white balance of an open device, in its own unit.

    Attributes:
        now: value that the device reports. Under its automatic that may be an old one.
        low, high: least and largest value.
    """

    now: float
    low: float
    high: float


@runtime_checkable
class AdjustableCamera(Camera, Protocol):
    """A camera whose size, rate and light can be chosen."""

    def ask(self, capture: Capture) -> None:
        """Say what ``open`` shall ask the device for."""

    def serial(self) -> str:
        """Return the serial number of the open device; empty: it has none."""

    def controls(self) -> Mapping[str, LightControl]:
        """Return the controls that the open device has, of ``exposure``, ``gain`` and ``white_balance``."""

    def automatic(self) -> None:
        """Let the open device choose its light by itself. Raises CameraError if it refuses."""

    def hold(self, values: Mapping[str, float]) -> None:
        """End the automatics of the open device, and set controls by name. Raises CameraError if it refuses."""


@dataclass(frozen=True)
class CameraDescriptor:
    """A source of images. Its module has one of these as ``CAMERA``. Other packages name theirs in ``bid_ros.cameras``.

    Attributes:
        name: what a camera file calls it as ``source``.
        build: from a camera's address, and the folder that relative paths in it count from, to the device, not open.
            Raises CameraError for an address that cannot be one.
        is_sensor: whether a camera of this address has a sensor, whose noise makes any two images differ. Where it has
            one, equal images in a row are frozen.
        device: the one name of the device of an address. Two addresses of one device are refused.
    """

    name: str
    build: Callable[[str, Path], Camera]
    is_sensor: Callable[[str], bool] = lambda _: False
    device: Callable[[str], str] = lambda address: address

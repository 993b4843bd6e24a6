"""The interface of camera devices."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Frame:
    """One image.

    Attributes:
        stamp_ns: time of the image, ROS system time (nanoseconds since 1970).
        image: ``(height, width, 3)`` uint8, rgb.
    """

    stamp_ns: int
    image: NDArray[np.uint8]


class Camera(Protocol):
    """A camera device, used by one thread: ``open``, ``read`` in a loop, ``close``."""

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
class CameraDescriptor:
    """A source of images. Its module has one of these as ``CAMERA``. Other packages name theirs in ``bid_ros.cameras``.

    Attributes:
        name: what a camera file calls it as ``source``.
        build: from a camera's address, and the folder that relative paths in it count from, to the device, not open.
            Raises CameraError for an address that cannot be one.
        is_sensor: whether a camera of this address has a sensor, whose noise makes any two images differ. Where it has
            one, equal images in a row are frozen.
    """

    name: str
    build: Callable[[str, Path], Camera]
    is_sensor: Callable[[str], bool] = lambda _: False

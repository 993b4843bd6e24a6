"""What every camera device can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Frame:
    """One picture.

    Attributes:
        stamp_ns: instant of the picture, ROS system time (nanoseconds since 1970).
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
        """Wait for the next frame, about half a second at most; None if none came in that time.

        Raises:
            CameraError: the device was lost or is not open.
        """

    def close(self) -> None:
        """Release the device; doing it twice is allowed."""

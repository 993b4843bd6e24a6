"""UVC devices (webcams, most industrial USB cameras) and video files, through OpenCV."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from bid_ros.cameras.base import CameraDescriptor, Frame
from bid_ros.core.errors import CameraError
from bid_ros.core.schedule import phase_aligned_start

_WAIT_S: Final = 0.5
_LOST_S: Final = 2.0  # a device silent for this long is lost


class UvcCamera:
    """A device by its number (``"0"``) or path (``"/dev/video0"``), or a video file, which plays in a loop.

    Reading a device waits for its newest frame (the buffer of its driver is set to one). Reading a file waits until the
    next frame is due, at the file's own rate. Frames that a slow reader missed are skipped, as with a camera. Frames
    are due at multiples of their period in wall time, so that files of one rate can be paired, also with a twin.

    Args:
        address: device number, device path or video file.
        clock: source of stamps in nanoseconds, ROS system time.
    """

    def __init__(self, address: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._address = address
        self._clock = clock
        self._is_file = not is_device(address)
        self._capture: Any = None
        self._closed = threading.Event()
        self._period_ns = 0
        self._due_ns = 0
        self._heard_ns = 0

    def open(self) -> None:
        """Open the device or file. Raises CameraError if it is missing, busy, or not a video."""
        if self._is_file and not Path(self._address).is_file():
            raise CameraError(
                f"camera '{self._address}' does not exist; valid is a device number, a path under /dev or a video file"
            )
        capture = cv2.VideoCapture(int(self._address) if self._address.isdigit() else self._address)
        if not capture.isOpened():
            capture.release()
            what = "is not a video OpenCV can read" if self._is_file else "does not exist or is in use"
            raise CameraError(f"camera '{self._address}' {what}; valid is a device number, a path or a video file")
        if self._is_file:
            rate = capture.get(cv2.CAP_PROP_FPS)
            self._period_ns = round(1e9 / rate) if 0 < rate <= 1000 else 33_333_333
        else:
            capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        self._capture = capture
        self._closed.clear()
        self._heard_ns = time.monotonic_ns()
        self._due_ns = phase_aligned_start(self._period_ns or 1, 0, time.time_ns(), self._heard_ns)

    def read(self) -> Frame | None:
        """Return the next frame, as :class:`bid_ros.cameras.base.Camera` says; raises CameraError if it is lost."""
        if self._capture is None:
            raise CameraError(f"camera '{self._address}' is not open")
        return self._read_file() if self._is_file else self._read_device()

    def close(self) -> None:
        """Release the device. A ``read`` that waits for a file's next frame returns at once."""
        self._closed.set()
        if self._capture is not None:
            self._capture.release()
            self._capture = None

    def _read_device(self) -> Frame | None:
        ok, picture = self._capture.read()
        now = time.monotonic_ns()
        if ok:
            self._heard_ns = now
            return self._frame(picture)
        if now - self._heard_ns > _LOST_S * 1e9:
            raise CameraError(f"camera '{self._address}' has delivered no frame for {_LOST_S:g} s; check its cable")
        self._closed.wait(0.05)  # a lost device fails at once: do not spin until it counts as lost
        return None

    def _read_file(self) -> Frame | None:
        wait_s = (self._due_ns - time.monotonic_ns()) / 1e9
        if wait_s > 0 and self._closed.wait(min(wait_s, _WAIT_S)):
            return None
        now = time.monotonic_ns()
        if now < self._due_ns:
            return None
        while now - self._due_ns >= self._period_ns and self._capture.grab():
            self._due_ns += self._period_ns
        ok, picture = self._capture.read()
        if not ok:  # the end
            self._capture.set(cv2.CAP_PROP_POS_FRAMES, 0)
            ok, picture = self._capture.read()
        if not ok:
            raise CameraError(
                f"camera '{self._address}' cannot be played again; valid is a video that OpenCV can rewind"
            )
        self._due_ns += self._period_ns
        return self._frame(picture)

    def _frame(self, picture: Any) -> Frame:
        return Frame(self._clock(), np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), dtype=np.uint8))


def _build(address: str, folder: Path) -> UvcCamera:
    device = address.isdigit() or address.startswith("/dev/")
    return UvcCamera(address if device else str(folder / address))


def is_device(address: str) -> bool:
    """Whether an address is that of a device. Otherwise it is a video file."""
    return address.isdigit() or address.startswith("/dev/")


CAMERA = CameraDescriptor("uvc", _build, is_device)

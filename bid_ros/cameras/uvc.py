"""UVC devices (webcams, most industrial USB cameras) and video files, through OpenCV."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from bid_ros.cameras.base import CameraDescriptor, Capture, Frame, LightControl
from bid_ros.cameras.modes import modes_text
from bid_ros.cameras.v4l2 import VideoDevice, node_path, video_nodes
from bid_ros.core.errors import CameraError
from bid_ros.core.schedule import phase_aligned_start

_WAIT_S: Final = 0.5
_LOST_S: Final = 2.0  # a device silent for this long is lost
_PACKED: Final = ("MJPG", "H264", "HEVC")  # taken only where the size and rate come no other way


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
        self._ask = Capture()
        self._capture: Any = None
        self._closed = threading.Event()
        self._period_ns = 0
        self._due_ns = 0
        self._heard_ns = 0

    def ask(self, capture: Capture) -> None:
        """Say what ``open`` shall ask the device for. Raises CameraError of a file."""
        if self._is_file and capture != Capture():
            raise CameraError(
                f"camera '{self._address}' is a video file; valid are size, rate_hz and locked of a device"
            )
        self._ask = capture

    def open(self) -> None:
        """Open the device or file.

        Raises:
            CameraError: it is missing, busy, or not a video, or the device does not offer what is asked.
        """
        if self._is_file and not Path(self._address).is_file():
            raise CameraError(
                f"camera '{self._address}' does not exist; valid is a device number, a path under /dev or a video file"
            )
        where = (self._address, cv2.CAP_ANY) if self._is_file else (node_path(self._address), cv2.CAP_V4L2)
        # Of one that is not there OpenCV writes lines of its own.
        capture = cv2.VideoCapture(*where) if Path(where[0]).exists() else None
        if capture is None or not capture.isOpened():
            what = "is not a video OpenCV can read" if self._is_file else "does not exist or is in use"
            raise CameraError(f"camera '{self._address}' {what}; valid is a device number, a path or a video file")
        self._capture = capture
        self._closed.clear()
        if self._is_file:
            rate = capture.get(cv2.CAP_PROP_FPS)
            self._period_ns = round(1e9 / rate) if 0 < rate <= 1000 else 33_333_333
        else:
            capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
            self._set_up()
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

    def serial(self) -> str:
        """Return the serial number of a device; empty: it has none."""
        path = node_path(self._address)
        return next((node.serial for node in video_nodes() if node.path == path), "")

    def controls(self) -> Mapping[str, LightControl]:
        """Return the controls of a device, as :class:`bid_ros.cameras.base.AdjustableCamera` says."""
        with self._device() as device:
            return device.controls()

    def automatic(self) -> None:
        """Let a device choose its light by itself. Raises CameraError if it is lost."""
        with self._device() as device:
            device.automatic()

    def hold(self, values: Mapping[str, float]) -> None:
        """End the automatics of a device, and set controls by name. Raises CameraError if it refuses."""
        with self._device() as device:
            device.hold(values)

    def _device(self) -> VideoDevice:
        if self._is_file:
            raise CameraError(f"camera '{self._address}' is a video file; valid is a device, whose light can be locked")
        return VideoDevice(node_path(self._address))

    def _set_up(self) -> None:
        """Ask a device for size, rate and light. Raises CameraError, and closes it, if it does not do so."""
        try:
            if self._ask.size or self._ask.rate_hz:
                self._choose_mode()
            if self._ask.locked:
                self.hold(self._ask.locked.values_for(self.serial(), f"camera '{self._address}'"))
        except CameraError:
            self.close()
            raise

    def _choose_mode(self) -> None:
        """Set the size and rate of a device, its own where none is asked for."""
        width, height = self._ask.size or (self._got(cv2.CAP_PROP_FRAME_WIDTH), self._got(cv2.CAP_PROP_FRAME_HEIGHT))
        with self._device() as device:
            fitting = list(device.fitting((width, height), self._ask.rate_hz))
            offered = [] if fitting else list(device.modes())
        if not fitting:
            rate_text = f" at {self._ask.rate_hz:g} Hz" if self._ask.rate_hz else ""
            raise CameraError(
                f"camera '{self._address}' has no {width:g}x{height:g} px{rate_text}; "
                f"valid are {modes_text(mode for _, mode in offered) or 'none that it tells'}"
            )
        pixels, rate = min(fitting, key=lambda mode: (mode[0] in _PACKED, -mode[1]))
        self._capture.set(cv2.CAP_PROP_FOURCC, int.from_bytes(pixels.ljust(4).encode(), "little"))
        for name, value in (("WIDTH", width), ("HEIGHT", height)):
            self._capture.set(getattr(cv2, f"CAP_PROP_FRAME_{name}"), value)
        self._capture.set(cv2.CAP_PROP_FPS, rate)
        now = self._got(cv2.CAP_PROP_FRAME_WIDTH), self._got(cv2.CAP_PROP_FRAME_HEIGHT)
        if now != (width, height):
            raise CameraError(
                f"camera '{self._address}' delivers {now[0]}x{now[1]} px though {width}x{height} were asked for; "
                "valid is a size that it keeps"
            )

    def _got(self, name: int) -> int:
        value: float = self._capture.get(name)
        return round(value)

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
    return UvcCamera(address if is_device(address) else str(folder / address))


def is_device(address: str) -> bool:
    """Whether an address is that of a device. Otherwise it is a video file."""
    return address.isdigit() or address.startswith("/dev/")


def _device_of(address: str) -> str:
    return node_path(address) if is_device(address) else address


CAMERA = CameraDescriptor("uvc", _build, is_device, _device_of)

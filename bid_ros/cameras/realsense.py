"""Intel RealSense colour cameras through ``pyrealsense2``.

It has not run on a real device yet. It was written from the library's documentation, and only opening without a device
is tested. On Debian and Ubuntu the library also needs ``libusb-1.0-0``.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from bid_ros.cameras.base import CameraDescriptor, Frame
from bid_ros.core.errors import CameraError
from bid_ros.core.extras import extra

_WAIT_MS: Final = 500
_LOST_S: Final = 2.0
_WIDTH, _HEIGHT, _RATE = 640, 480, 30


class RealSenseCamera:
    """The colour stream of one RealSense, 640x480 rgb8 at 30 Hz, which every model offers.

    Stamps are those of the device, if its driver maps them to the host's clock; otherwise the time of arrival.

    Args:
        serial: serial number of the device, as ``rs-enumerate-devices`` prints it.
        clock: source of arrival stamps in nanoseconds, ROS system time.
    """

    def __init__(self, serial: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._serial = serial
        self._clock = clock
        self._rs: Any = None
        self._pipeline: Any = None
        self._heard_ns = 0

    def open(self) -> None:
        """Start the stream. Raises CameraError if the library or the device is missing, or the device is busy."""
        with extra("realsense", f"camera '{self._serial}'", CameraError):
            self._rs = import_module("pyrealsense2")
        pipeline, config = self._rs.pipeline(), self._rs.config()
        config.enable_device(self._serial)
        config.enable_stream(self._rs.stream.color, _WIDTH, _HEIGHT, self._rs.format.rgb8, _RATE)
        try:
            pipeline.start(config)
        except RuntimeError as error:
            raise CameraError(
                f"RealSense '{self._serial}' does not start: {error}; valid is the serial number of a free device"
            ) from error
        self._pipeline = pipeline
        self._heard_ns = time.monotonic_ns()

    def read(self) -> Frame | None:
        """Return the next frame, as :class:`bid_ros.cameras.base.Camera` says; raises CameraError if it is lost."""
        if self._pipeline is None:
            raise CameraError(f"RealSense '{self._serial}' is not open")
        arrived, frames = self._pipeline.try_wait_for_frames(_WAIT_MS)
        color = frames.get_color_frame() if arrived else None
        if not color:
            if time.monotonic_ns() - self._heard_ns > _LOST_S * 1e9:
                raise CameraError(
                    f"RealSense '{self._serial}' has delivered no frame for {_LOST_S:g} s; check its cable"
                )
            return None
        self._heard_ns = time.monotonic_ns()
        # The library reuses its buffers, so the image is copied before the next frame.
        return Frame(self._stamp_ns(color), np.array(color.get_data(), dtype=np.uint8))

    def close(self) -> None:
        """Stop the stream."""
        if self._pipeline is not None:
            self._pipeline.stop()
            self._pipeline = None

    def _stamp_ns(self, color: Any) -> int:
        domains = self._rs.timestamp_domain
        if color.get_frame_timestamp_domain() in (domains.global_time, domains.system_time):
            return int(float(color.get_timestamp()) * 1e6)
        return self._clock()


CAMERA = CameraDescriptor("realsense", lambda serial, folder: RealSenseCamera(serial), lambda _: True)

"""Intel RealSense colour cameras through ``pyrealsense2``.

It has not run on a real device yet. It was tried with software devices of the library itself (2.59.1), which stream
through its real sensors and frames. On Debian and Ubuntu the library also needs ``libusb-1.0-0``.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import numpy as np

from bid_ros.cameras.base import CameraDescriptor, Capture, Frame, LightControl
from bid_ros.cameras.modes import Mode, modes_text
from bid_ros.core.errors import CameraError
from bid_ros.core.extras import extra

_WAIT_MS: Final = 500
_LOST_S: Final = 2.0
SIZE: Final = (640, 480)
RATE_HZ: Final = 30
# Of each control: the library's option, which has its name, and the option of its automatic.
CONTROLS: Final = {
    "exposure": "enable_auto_exposure",
    "gain": "enable_auto_exposure",
    "white_balance": "enable_auto_white_balance",
}


class RealSenseCamera:
    """The colour stream of one RealSense, rgb8, by default 640x480 at 30 Hz, which every model offers.

    Stamps are those of the device, if its driver maps them to the host's clock; otherwise the time of arrival.

    Args:
        serial: serial number of the device, as ``bid cameras`` lists it.
        clock: source of arrival stamps in nanoseconds, ROS system time.
        devices: those that are connected; None: asks the library.
    """

    def __init__(
        self,
        serial: str,
        clock: Callable[[], int] = time.time_ns,
        devices: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        self._serial, self._clock, self._devices = serial, clock, devices
        self._capture = Capture()
        self._rs: Any = None
        self._sensor: Any = None
        self._queue: Any = None
        self._heard_ns = 0

    def ask(self, capture: Capture) -> None:
        """Say what ``open`` shall ask the device for."""
        self._capture = capture

    def open(self) -> None:
        """Start the stream.

        Raises:
            CameraError: the library or the device is missing, the device is busy, or does not offer what is asked.
        """
        self._rs = library(f"camera '{self._serial}'")
        self._sensor, profile = self._find()
        self._queue = self._rs.frame_queue(1)
        try:
            if self._capture.locked:
                self.hold(self._capture.locked.values_for(self._serial, f"RealSense '{self._serial}'"))
            with self._refusing("start"):
                self._sensor.open(profile)
                self._sensor.start(self._queue)
        except CameraError:
            self.close()
            raise
        self._heard_ns = time.monotonic_ns()

    def read(self) -> Frame | None:
        """Return the next frame, as :class:`bid_ros.cameras.base.Camera` says; raises CameraError if it is lost."""
        if self._sensor is None:
            raise self._problem("is not open")
        arrived, frame = self._queue.try_wait_for_frame(_WAIT_MS)
        if not arrived:
            if time.monotonic_ns() - self._heard_ns > _LOST_S * 1e9:
                raise self._problem(f"has delivered no frame for {_LOST_S:g} s; check its cable")
            return None
        self._heard_ns = time.monotonic_ns()
        # The library reuses its buffers, so the image is copied before the next frame.
        return Frame(self._stamp_ns(frame), np.array(frame.as_video_frame().get_data(), dtype=np.uint8))

    def close(self) -> None:
        """Stop the stream of a device, which may be gone. A second call does nothing."""
        sensor, self._sensor = self._sensor, None
        for end in (sensor.stop, sensor.close) if sensor is not None else ():
            with suppress(RuntimeError):
                end()

    def serial(self) -> str:
        """Return the serial number."""
        return self._serial

    def controls(self) -> Mapping[str, LightControl]:
        """Return the controls of the open device, as :class:`bid_ros.cameras.base.AdjustableCamera` says."""
        found = {}
        for name in CONTROLS:
            option = getattr(self._rs.option, name)
            with suppress(RuntimeError):
                if self._sensor.supports(option) and not self._sensor.is_option_read_only(option):
                    valid = self._sensor.get_option_range(option)
                    found[name] = LightControl(self._sensor.get_option(option), valid.min, valid.max)
        return found

    def automatic(self) -> None:
        """Let the open device choose its light by itself. Raises CameraError if it refuses."""
        self._switch(CONTROLS, 1.0)

    def hold(self, values: Mapping[str, float]) -> None:
        """End the automatics of the open device, and set controls by name. Raises CameraError if it refuses."""
        self._switch(values, 0.0)
        for name, value in values.items():
            with self._refusing(f"take {name} {value:g}"):
                self._sensor.set_option(getattr(self._rs.option, name), value)

    def _switch(self, names: Iterable[str], on: float) -> None:
        for automatic in {CONTROLS[name] for name in names}:
            option = getattr(self._rs.option, automatic)
            with self._refusing(f"switch {automatic}"):
                if self._sensor.supports(option):
                    self._sensor.set_option(option, on)

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        """Turn an error of the library into one sentence."""
        try:
            yield
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise self._problem(f"does not {what}: {reason}; valid is a free device, and what it offers") from error

    def _problem(self, what: str) -> CameraError:
        return CameraError(f"RealSense '{self._serial}' {what}")

    def _find(self) -> tuple[Any, Any]:
        """Return the sensor of the device and the profile that is asked for. Raises CameraError."""
        with self._refusing("answer"):
            found = list(self._devices() if self._devices else self._rs.context().query_devices())
        device = next((item for item in found if told(item, "serial_number") == self._serial), None)
        if device is None:
            valid = ", ".join(sorted(told(item, "serial_number") for item in found))
            raise self._problem(
                f"is not connected; valid are {valid}" if valid else "is not connected, and no other is"
            )
        size, rate = self._capture.size or SIZE, self._capture.rate_hz or RATE_HZ
        with self._refusing("list what it offers"):
            offered = colour_profiles(device)
        for mode, sensor, profile in offered:
            if mode == (*size, rate):
                return sensor, profile
        valid = modes_text(mode for mode, _, _ in offered)
        raise self._problem(f"has no colour of {size[0]}x{size[1]} px at {rate:g} Hz; valid are {valid or 'none'}")

    def _stamp_ns(self, frame: Any) -> int:
        domains = self._rs.timestamp_domain
        if frame.get_frame_timestamp_domain() in (domains.global_time, domains.system_time):
            return int(float(frame.get_timestamp()) * 1e6)
        return self._clock()


def library(what: str) -> Any:
    """Return ``pyrealsense2``; ``what`` needs it. Raises CameraError if it is not installed."""
    with extra("realsense", what, CameraError):
        return import_module("pyrealsense2")


def told(device: Any, name: str) -> str:
    """Return what a device says of itself, such as ``serial_number``; empty if it does not say that."""
    with suppress(RuntimeError, AttributeError):
        return str(device.get_info(getattr(import_module("pyrealsense2").camera_info, name)))
    return ""


def colour_profiles(device: Any) -> list[tuple[Mode, Any, Any]]:
    """Return the colour that a device offers as rgb8: width, height and rate of each, its sensor and its profile."""
    rs, found = import_module("pyrealsense2"), []
    for sensor in device.query_sensors():
        for profile in sensor.get_stream_profiles():
            if profile.stream_type() == rs.stream.color and profile.format() == rs.format.rgb8:
                video = profile.as_video_stream_profile()
                found.append(((int(video.width()), int(video.height()), float(profile.fps())), sensor, profile))
    return found


CAMERA = CameraDescriptor("realsense", lambda serial, folder: RealSenseCamera(serial), lambda _: True)

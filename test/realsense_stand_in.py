"""Stands in for ``pyrealsense2`` where it is not installed: its names and signatures, as far as bid_ros and tests use
them. The tests run on both, so what differs shows where the library is installed.
"""

from __future__ import annotations

import enum
import queue
from types import SimpleNamespace

import numpy as np

camera_info = enum.Enum("camera_info", "name serial_number firmware_version usb_type_descriptor")
option = enum.Enum("option", "exposure gain white_balance enable_auto_exposure enable_auto_white_balance")
stream = enum.Enum("stream", "color depth")
format = enum.Enum("format", "rgb8 yuyv")
timestamp_domain = enum.Enum("timestamp_domain", "hardware_clock system_time global_time")
video_stream = intrinsics = option_range = software_video_frame = SimpleNamespace


class frame_queue(queue.Queue):
    def try_wait_for_frame(self, timeout_ms: int = 5000):
        try:
            return True, self.get(timeout=timeout_ms / 1e3)
        except queue.Empty:
            return False, None

    def put_newest(self, frame) -> None:
        if self.full():
            self.get_nowait()
        self.put_nowait(frame)


class stream_profile:
    def __init__(self, told) -> None:
        self._told = told

    def as_video_stream_profile(self):
        return self

    def __getattr__(self, name):
        return lambda: getattr(self._told, {"format": "fmt", "stream_type": "type"}.get(name, name))


class frame:
    def __init__(self, told) -> None:
        self._told = told

    def as_video_frame(self):
        return self

    def get_data(self):
        return np.array(self._told.pixels)

    def get_timestamp(self) -> float:
        return self._told.timestamp

    def get_frame_timestamp_domain(self):
        return self._told.domain


class software_sensor:
    def __init__(self) -> None:
        self._profiles, self._options, self._opened, self._queue = [], {}, None, None

    def add_video_stream(self, told, is_default: bool = False):
        self._profiles.append(stream_profile(told))
        return self._profiles[-1]

    def add_option(self, name, valid, is_writable: bool = True) -> None:
        self._options[name] = [valid.default, valid]

    def get_stream_profiles(self):
        return self._profiles

    def supports(self, name) -> bool:
        return name in self._options

    def is_option_read_only(self, name) -> bool:
        return False

    def get_option(self, name) -> float:
        return float(self._options[name][0])

    def get_option_range(self, name):
        return self._options[name][1]

    def set_option(self, name, value: float) -> None:
        valid = self._options[name][1]
        if not valid.min <= value <= valid.max:
            raise RuntimeError('out of range value for argument "value"')
        self._options[name][0] = value

    def open(self, profile) -> None:
        if self._opened is not None:
            raise RuntimeError("open(...) failed. Software device is streaming!")
        self._opened = profile

    def start(self, into) -> None:
        self._queue = into

    def on_video_frame(self, told) -> None:
        if self._queue is not None:
            self._queue.put_newest(frame(told))

    def stop(self) -> None:
        if self._queue is None:
            raise RuntimeError("stop_streaming() failed. Software device is not streaming!")
        self._queue = None

    def close(self) -> None:
        if self._opened is None:
            raise RuntimeError("close() failed. Software device was not opened!")
        self._opened = None


class software_device:
    def __init__(self) -> None:
        self._info, self._sensors = {}, []

    def register_info(self, info, val: str) -> None:
        self._info[info] = val

    def get_info(self, info) -> str:
        if info not in self._info:
            raise RuntimeError("info not supported by the device!")
        return self._info[info]

    def add_sensor(self, name: str):
        self._sensors.append(software_sensor())
        return self._sensors[-1]

    def query_sensors(self):
        return self._sensors


class context:
    def query_devices(self):
        return []

"""A RealSense by the library's own software devices, and by a stand-in where the library is not installed.

No real camera has been tried.
"""

from __future__ import annotations

import sys
from itertools import count

import numpy as np
import pytest
import realsense_stand_in

from bid_ros.cameras import realsense
from bid_ros.cameras.base import Capture, LightControl, LockedLight
from bid_ros.cameras.listing import realsense_cameras
from bid_ros.cameras.realsense import RealSenseCamera
from bid_ros.core.errors import CameraError

SERIAL = "123622270732"
MODES = ((640, 480, 30), (640, 480, 15), (64, 48, 15))
LIGHT = {"exposure": (156, 1, 10000), "gain": (64, 0, 128), "white_balance": (4600, 2800, 6500)}
SWITCHES = ("enable_auto_exposure", "enable_auto_white_balance")
NOW_MS = 1_795_709_792_718.25


class Device:
    """A device that streams what it is given."""

    def __init__(self, rs, serial=SERIAL, usb="3.2"):
        self._rs, self._numbers = rs, count()
        self.device = rs.software_device()
        for name, value in (("serial_number", serial), ("usb_type_descriptor", usb), ("name", "D435 of a test")):
            self.device.register_info(getattr(rs.camera_info, name), value)
        self.sensor = self.device.add_sensor("RGB Camera")
        self.profiles = {mode: self._stream(at, mode, rs.format.rgb8) for at, mode in enumerate(MODES)}
        self._stream(len(MODES), (320, 240, 60), rs.format.yuyv)
        for name, (now, low, high) in {**LIGHT, **dict.fromkeys(SWITCHES, (1, 0, 1))}.items():
            valid = rs.option_range()
            valid.min, valid.max, valid.step, valid.default = low, high, 1, now
            self.sensor.add_option(getattr(rs.option, name), valid)

    def _stream(self, number, mode, pixels):
        told, lens = self._rs.video_stream(), self._rs.intrinsics()
        told.type, told.index, told.uid, told.fmt, told.bpp = self._rs.stream.color, 0, number, pixels, 3
        told.width, told.height, told.fps = mode
        lens.width, lens.height, lens.fx, lens.fy, lens.ppx, lens.ppy = *mode[:2], 600, 600, 0, 0
        told.intrinsics = lens
        return self.sensor.add_video_stream(told)

    def push(self, image, stamp_ms=NOW_MS, domain="global_time", mode=MODES[2]):
        frame = self._rs.software_video_frame()
        frame.pixels, frame.stride, frame.bpp, frame.frame_number = image, 3 * mode[0], 3, next(self._numbers)
        frame.timestamp, frame.domain = stamp_ms, getattr(self._rs.timestamp_domain, domain)
        frame.profile = self.profiles[mode].as_video_stream_profile()
        self.sensor.on_video_frame(frame)

    def option(self, name):
        return self.sensor.get_option(getattr(self._rs.option, name))


@pytest.fixture(params=["stand-in", "pyrealsense2"])
def rs(request, monkeypatch):
    monkeypatch.setattr(realsense, "_WAIT_MS", 20)
    monkeypatch.setattr(realsense, "_LOST_S", 0.1)
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "pyrealsense2", realsense_stand_in)
        return realsense_stand_in
    return pytest.importorskip("pyrealsense2", reason="pyrealsense2 is not installed")


def camera_of(*devices, serial=SERIAL, **asked):
    camera = RealSenseCamera(serial, lambda: 7, lambda: [item.device for item in devices])
    camera.ask(Capture(**asked))
    return camera


def picture(level=100):
    return np.full((48, 64, 3), (level, 50, 10), np.uint8)


def test_frames_are_rgb_with_the_devices_stamp_if_that_is_of_this_computer(rs):
    device = Device(rs)
    camera = camera_of(Device(rs, "1"), device, size=(64, 48), rate_hz=15)
    camera.open()
    for domain, stamp_ns in (("global_time", 1_795_709_792_718_250_000), ("hardware_clock", 7)):
        device.push(picture(), domain=domain)
        frame = camera.read()
        assert abs(frame.stamp_ns - stamp_ns) < 1000, "a double holds ms since 1970 to 0.3 us"
        np.testing.assert_array_equal(frame.image, picture())
    camera.close()


def test_a_device_that_is_unplugged_is_lost_and_opens_again(rs):
    device, there = Device(rs), []
    camera = RealSenseCamera(SERIAL, devices=lambda: [item.device for item in there])
    camera.ask(Capture((64, 48), 15))
    with pytest.raises(CameraError, match=f"RealSense '{SERIAL}' is not connected, and no other is"):
        camera.open()
    there.append(device)
    for _ in range(2):
        camera.open()
        device.push(picture())
        assert camera.read() is not None
        with pytest.raises(CameraError, match=r"has delivered no frame for 0\.1 s; check its cable"):
            while camera.read() is None:
                pass
        camera.close()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"serial": "99"}, "RealSense '99' is not connected; valid are 123622270732"),
        ({"size": (1280, 720)}, "of 1280x720 px at 30 Hz; valid are 64x48 at 15 Hz; 640x480 at 15, 30 Hz"),
        ({"rate_hz": 60}, "has no colour of 640x480 px at 60 Hz; valid are"),
        ({"locked": LockedLight("99", 100)}, "but its light was locked on '99'; valid is the same device, or a new"),
        ({"locked": LockedLight(SERIAL, 99999)}, "does not take exposure 99999: out of range value"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_and_leaves_the_device_free(rs, asked, words):
    device = Device(rs)
    with pytest.raises(CameraError) as caught:
        camera_of(device, **asked).open()
    assert words in str(caught.value) and "\n" not in str(caught.value)
    camera = camera_of(device)
    camera.open()
    with pytest.raises(CameraError, match=r"does not start: .*; valid is a free device"):
        camera_of(device).open()
    camera.close()


def test_light_is_the_devices_own_unless_it_is_locked(rs):
    device = Device(rs)
    camera = camera_of(device)
    camera.open()
    assert camera.controls() == {name: LightControl(*valid) for name, valid in LIGHT.items()}
    assert [device.option(name) for name in SWITCHES] == [1, 1]
    camera.close()
    camera = camera_of(device, locked=LockedLight(SERIAL, exposure=200, gain=10))
    camera.open()
    assert [device.option(name) for name in ("exposure", "gain", *SWITCHES)] == [200, 10, 0, 1]
    camera.automatic()
    assert [device.option(name) for name in SWITCHES] == [1, 1]
    camera.close()


def test_the_list_has_what_a_person_needs_to_know(rs):
    (first, second) = realsense_cameras([Device(rs).device, Device(rs, "7", "2.1").device])
    assert (first.source, first.address, first.usb, first.firmware) == ("realsense", SERIAL, "USB 3.2", "")
    assert first.modes == "64x48 at 15 Hz; 640x480 at 15, 30 Hz" and not first.problem
    assert second.problem.startswith("on USB 2: ")


def test_opening_without_the_library_or_the_device_is_one_sentence():
    with pytest.raises(CameraError, match=r"needs the extra 'realsense'|is not connected") as caught:
        RealSenseCamera("no such serial").open()
    assert "'no such serial'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reading_before_open_is_refused_and_close_is_harmless():
    camera = RealSenseCamera("1")
    with pytest.raises(CameraError, match="is not open"):
        camera.read()
    camera.close()

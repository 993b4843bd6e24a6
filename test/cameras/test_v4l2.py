"""Devices of Video4Linux, as the kernel's header and /sys describe them. No real device has been tried."""

import ctypes

import pytest

from bid_ros.cameras import v4l2
from bid_ros.cameras.base import LightControl
from bid_ros.cameras.listing import uvc_cameras
from bid_ros.cameras.modes import modes_text
from bid_ros.cameras.v4l2 import VideoDevice, node_path, video_nodes
from bid_ros.core.errors import CameraError

U32, S32 = ctypes.c_uint32, ctypes.c_int32
YUYV, MJPG = (int.from_bytes(name, "little") for name in (b"YUYV", b"MJPG"))
SIZES = {YUYV: [(640, 480)], MJPG: [(640, 480), (1280, 720)]}
GRID = (32, 1920, 8, 16, 1080, 4)  # least, greatest and step of the width and of the height


def layout(**fields):
    return type("Layout", (ctypes.Structure,), {"_fields_": list(fields.items())})


# Written by hand from linux/videodev2.h; the numbers are what a C program prints for its macros.
CAPABILITY = layout(names=ctypes.c_char * 80, version=U32, capabilities=U32, device_caps=U32, reserved=U32 * 3)
FORMAT = layout(index=U32, type=U32, flags=U32, text=ctypes.c_char * 32, pixels=U32, code=U32, reserved=U32 * 3)
SIZE = layout(index=U32, pixels=U32, type=U32, width=U32, height=U32, rest=U32 * 6)
INTERVAL = layout(index=U32, pixels=U32, width=U32, height=U32, type=U32, over=U32, under=U32, rest=U32 * 6)
CONTROL = layout(id=U32, value=S32)
QUERY = layout(
    id=U32, type=U32, name=ctypes.c_char * 32, low=S32, high=S32, step=S32, usual=S32, flags=U32, reserved=U32 * 2
)
REQUESTS = {
    0x80685600: CAPABILITY,
    0xC0405602: FORMAT,
    0xC02C564A: SIZE,
    0xC034564B: INTERVAL,
    0xC008561B: CONTROL,
    0xC008561C: CONTROL,
    0xC0445624: QUERY,
}


class Kernel:
    """A webcam's answers. It has no gain, and its exposure knows no fully automatic mode."""

    def __init__(self):
        self.values = {0x9A0901: 3, 0x9A0902: 250, 0x98090C: 1, 0x98091A: 4600}
        self.ranges = {0x9A0902: (3, 2047), 0x98091A: (2800, 6500)}
        self.stepwise = False

    def ioctl(self, file, request, data):
        told = REQUESTS[request].from_buffer(data)
        assert ctypes.sizeof(told) == len(data)
        if not self._answer(request, told):
            raise OSError(22, "Invalid argument")

    def _answer(self, request, told):
        if request == 0x80685600:
            told.device_caps = 1
        elif request == 0xC0405602:
            assert told.type == 1
            if told.index > 1:
                return False
            told.pixels = (YUYV, MJPG)[told.index]
        elif self.stepwise and request in (0xC02C564A, 0xC034564B):
            # A driver says one range, and some say it again for every index.
            if request == 0xC02C564A:
                told.type, told.width, told.height, told.rest = 3, *GRID[:2], (U32 * 6)(*GRID[2:])
            else:
                told.type, told.over, told.under, told.rest = 2, 1, 60, (U32 * 6)(1, 5)
        elif request == 0xC02C564A:
            if told.index >= len(SIZES[told.pixels]):
                return False
            told.type, (told.width, told.height) = 1, SIZES[told.pixels][told.index]
        elif request == 0xC034564B:
            rates = (30,) if (told.pixels, told.width) == (MJPG, 1280) else (30, 15)
            if told.index >= len(rates):
                return False
            told.type, told.over, told.under = 1, 1, rates[told.index]
        else:
            return self._control(request, told)
        return True

    def _control(self, request, told):
        if told.id not in self.values:
            return False
        if request == 0xC0445624:
            told.low, told.high = self.ranges[told.id]
        elif request == 0xC008561B:
            told.value = self.values[told.id]
        else:
            low, high = self.ranges.get(told.id, (1, 3) if told.id == 0x9A0901 else (0, 1))
            if not low <= told.value <= high:
                return False
            self.values[told.id] = told.value
        return True


@pytest.fixture
def kernel(monkeypatch):
    found = Kernel()
    monkeypatch.setattr(v4l2, "ioctl", found.ioctl)
    return found


def test_sizes_and_rates_are_what_the_driver_enumerates(kernel):
    with VideoDevice("/dev/null") as device:
        assert device.captures()
        modes = list(device.modes())
    assert modes[:2] == [("YUYV", (640, 480, 30.0)), ("YUYV", (640, 480, 15.0))] and len(modes) == 5
    assert modes_text(mode for _, mode in modes) == "640x480 at 15, 30 Hz; 1280x720 at 30 Hz"


def test_of_sizes_and_rates_in_ranges_any_on_the_step_is_taken(kernel):
    kernel.stepwise = True
    with VideoDevice("/dev/null") as device:
        told = "32x16 to 1920x1080 in steps of 8x4 at 5 to 60 Hz"
        assert modes_text(mode for _, mode in device.modes()) == told
        assert list(device.fitting((640, 480), None)) == [("YUYV", 60.0), ("MJPG", 60.0)]
        assert list(device.fitting((640, 480), 12.5)) == [("YUYV", 12.5), ("MJPG", 12.5)]
        for size, rate in (((641, 480), None), ((640, 482), None), ((1928, 480), None), ((640, 480), 61.0)):
            assert not list(device.fitting(size, rate)), (size, rate)


def test_of_single_sizes_and_rates_those_alone_are_taken(kernel):
    with VideoDevice("/dev/null") as device:
        assert list(device.fitting((1280, 720), 30)) == [("MJPG", 30)]
        assert not list(device.fitting((1280, 720), 15)) and not list(device.fitting((640, 481), None))


def test_light_is_held_by_the_manual_modes_and_given_back(kernel):
    with VideoDevice("/dev/null") as device:
        assert device.controls() == {
            "exposure": LightControl(250, 3, 2047),
            "white_balance": LightControl(4600, 2800, 6500),
        }
        device.hold({"exposure": 99.6, "white_balance": 5000})
        assert kernel.values == {0x9A0901: 1, 0x9A0902: 100, 0x98090C: 0, 0x98091A: 5000}
        device.automatic()
        assert (kernel.values[0x9A0901], kernel.values[0x98090C]) == (3, 1)
        with pytest.raises(CameraError, match="does not take exposure 5000"):
            device.hold({"exposure": 5000})
        with pytest.raises(CameraError, match="does not take gain 3"):
            device.hold({"gain": 3})


def test_a_device_that_is_not_there_is_one_sentence():
    with pytest.raises(CameraError, match="camera '/dev/video97' does not open: No such file or directory; valid"):
        VideoDevice("/dev/video97")


def plug(root, number, serial, port, name="HD Webcam"):
    usb = root / "usb" / port
    (usb / f"{port}:1.0").mkdir(parents=True, exist_ok=True)
    for file, text in (("serial", serial), ("idVendor", "046d"), ("speed", "480")):
        (usb / file).write_text(f"{text}\n")
    node = root / "class" / f"video{number}"
    node.mkdir(parents=True)
    (node / "name").write_text(f"{name}\n")
    (node / "device").symlink_to(usb / f"{port}:1.0")


def test_devices_have_their_serial_number_speed_and_lasting_path(tmp_path):
    plug(tmp_path, 10, "A1", "1-2")
    plug(tmp_path, 2, "B2", "1-3")
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    (by_id / "usb-HD_Webcam_A1-video-index0").symlink_to("/dev/video10")
    first, second = video_nodes(tmp_path / "class", by_id)
    assert (first.path, first.lasting, first.serial) == ("/dev/video2", "/dev/video2", "B2")
    assert (second.lasting, second.name) == (str(by_id / "usb-HD_Webcam_A1-video-index0"), "HD Webcam")
    assert (second.vendor, second.speed) == ("046d", "480")
    assert node_path("2") == "/dev/video2" and node_path(second.lasting) == "/dev/video10"


def test_two_cameras_of_one_serial_number_are_said(tmp_path, kernel, monkeypatch):
    for number, serial in ((0, "SN0001"), (2, "SN0001"), (4, "X")):
        plug(tmp_path, number, serial, f"1-{number + 1}")
    opened = VideoDevice.__init__
    monkeypatch.setattr(VideoDevice, "__init__", lambda self, path: opened(self, "/dev/null"))
    found = uvc_cameras(video_nodes(tmp_path / "class", tmp_path))
    assert [camera.address for camera in found] == ["/dev/video0", "/dev/video2", "/dev/video4"]
    said = "2 cameras have this serial number; valid is its path below /dev/v4l/by-path"
    assert [camera.problem for camera in found] == [said, said, ""]
    assert found[2].modes == "640x480 at 15, 30 Hz; 1280x720 at 30 Hz" and found[2].usb == "480 Mbit/s"

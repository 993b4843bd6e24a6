from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
import pytest
from real_time import HoldUps

from bid_ros.cameras.base import Capture, LockedLight
from bid_ros.cameras.uvc import CAMERA, UvcCamera
from bid_ros.core.errors import CameraError

RATE = 50.0
COLOURS = [(250, 10, 10), (10, 250, 10), (10, 10, 250), (240, 240, 10), (10, 240, 240), (240, 10, 240)]


def write_video(path, rate):
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), rate, (64, 48))
    for colour in COLOURS:
        writer.write(np.full((48, 64, 3), colour[::-1], np.uint8))
    writer.release()
    return str(path)


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("video") / "colours.avi", RATE)


@pytest.fixture
def opened():
    cameras = []

    def start(*arguments, **options):
        cameras.append(UvcCamera(*arguments, **options))
        cameras[-1].open()
        return cameras[-1]

    yield start
    for camera in cameras:
        camera.close()


def frames_of(camera, count):
    """Read until ``count`` frames have come."""
    frames, deadline = [], time.monotonic() + 5.0
    while len(frames) < count and time.monotonic() < deadline:
        frame = camera.read()
        if frame is not None:
            frames.append(frame)
    return frames


def nearest_colour(frame):
    return int(np.argmin(np.abs(np.array(COLOURS) - frame.image.mean(axis=(0, 1))).sum(axis=1)))


def test_a_file_plays_in_rgb_and_again_from_its_end(video, opened):
    frames = frames_of(opened(video), 3 * len(COLOURS))
    colours = [nearest_colour(frame) for frame in frames]
    assert len(frames) == 3 * len(COLOURS)
    assert frames[0].image.shape == (48, 64, 3) and frames[0].image.dtype == np.uint8
    assert np.abs(frames[0].image.astype(int) - COLOURS[0]).max() < 20
    # Frames may be skipped, but their order is the file's.
    assert colours[0] == 0 and sum(later < sooner for sooner, later in pairwise(colours)) in (2, 3)


def test_a_file_plays_at_its_own_rate_on_the_grid_of_wall_time(video, opened):
    camera = opened(video)
    started = time.monotonic()
    frames = frames_of(camera, 12)
    assert time.monotonic() - started >= 11 / RATE - 0.001
    late_ns = [frame.stamp_ns % round(1e9 / RATE) for frame in frames]
    assert min(late_ns) < 5_000_000


def test_a_slow_reader_skips_frames(video, opened):
    camera = opened(video)
    late = time.monotonic() + 4.5 / RATE
    while time.monotonic() < late:
        time.sleep(0.001)
    assert nearest_colour(frames_of(camera, 1)[0]) >= 3


def test_stamps_come_from_the_clock(video, opened):
    camera = opened(video, clock=lambda: 42)
    assert frames_of(camera, 1)[0].stamp_ns == 42


def test_close_wakes_a_reader_that_waits(tmp_path, opened):
    camera = opened(write_video(tmp_path / "slow.avi", 0.2))
    frames_of(camera, 1)
    with HoldUps() as since:
        threading.Timer(0.05, camera._closed.set).start()
        assert camera.read() is None
        assert since.seconds() < 0.4


def test_a_reader_waits_instead_of_spinning(tmp_path, opened):
    camera = opened(write_video(tmp_path / "slow.avi", 0.2))
    frames_of(camera, 1)
    started = time.monotonic()
    assert camera.read() is None
    assert time.monotonic() - started > 0.3


def test_a_camera_opens_again(video, opened):
    camera = opened(video)
    frames_of(camera, 100)
    camera.close()
    camera.open()
    assert nearest_colour(frames_of(camera, 1)[0]) == 0


@pytest.mark.parametrize("address", ["/dev/video97", "97"])
def test_a_missing_device_is_one_sentence(address):
    with pytest.raises(CameraError, match=f"camera '{address}' does not exist or is in use"):
        UvcCamera(address).open()


def test_a_missing_file_and_one_that_is_no_video_are_one_sentence(tmp_path):
    with pytest.raises(CameraError, match="does not exist; valid is a device number"):
        UvcCamera(str(tmp_path / "none.mp4")).open()
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    with pytest.raises(CameraError, match="is not a video OpenCV can read"):
        UvcCamera(str(text)).open()


def test_a_file_is_looked_for_beside_the_camera_file_and_a_device_is_not():
    built = {
        address: CAMERA.build(address, Path("/here"))._address for address in ("a.mp4", "/b.mp4", "0", "/dev/video3")
    }
    assert built == {"a.mp4": "/here/a.mp4", "/b.mp4": "/b.mp4", "0": "0", "/dev/video3": "/dev/video3"}


def test_reading_before_open_or_after_close_is_refused(video):
    camera = UvcCamera(video)
    with pytest.raises(CameraError, match="is not open"):
        camera.read()
    camera.open()
    camera.close()
    camera.close()
    with pytest.raises(CameraError, match="is not open"):
        camera.read()


class Webcam:
    """Stands in for OpenCV's capture of a device, and for the questions to its driver. It keeps what it is set to."""

    opened: ClassVar[list[Webcam]] = []
    offered = (("YUYV", (640, 480, 30.0)), ("MJPG", (640, 480, 30.0)), ("MJPG", (1280, 720, 30.0)))

    def __init__(self, *where):
        self.set_to = {cv2.CAP_PROP_FRAME_WIDTH: 640.0, cv2.CAP_PROP_FRAME_HEIGHT: 480.0}
        self.light = None
        self.opened.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def isOpened(self):
        return True

    def set(self, name, value):
        self.set_to[name] = value

    def get(self, name):
        return self.set_to[name]

    def release(self): ...

    def modes(self):
        return self.offered

    def fitting(self, size, rate):
        return [(name, mode[2]) for name, mode in self.offered if mode[:2] == size and rate in (None, mode[2])]

    def hold(self, values):
        self.light = values


@pytest.fixture
def webcam(monkeypatch):
    monkeypatch.setattr(Webcam, "opened", [])
    monkeypatch.setattr(cv2, "VideoCapture", Webcam)
    monkeypatch.setattr("bid_ros.cameras.uvc.VideoDevice", Webcam)
    monkeypatch.setattr("bid_ros.cameras.uvc.node_path", lambda address: "/dev/null")


@pytest.mark.parametrize(
    ("asked", "pixels", "size"),
    [(Capture((640, 480)), b"YUYV", (640, 480)), (Capture((1280, 720), 30), b"MJPG", (1280, 720))],
)
def test_a_device_is_set_to_a_size_that_it_offers_packed_only_if_it_must_be(webcam, asked, pixels, size):
    camera = UvcCamera("0")
    camera.ask(asked)
    camera.open()
    found = Webcam.opened[0].set_to
    assert found[cv2.CAP_PROP_FOURCC] == int.from_bytes(pixels, "little") and found[cv2.CAP_PROP_FPS] == 30
    assert (found[cv2.CAP_PROP_FRAME_WIDTH], found[cv2.CAP_PROP_FRAME_HEIGHT]) == size


def test_a_size_that_a_device_does_not_offer_is_refused_with_those_that_it_does(webcam):
    camera = UvcCamera("0")
    for asked, words in (
        (Capture((1280, 720), 60), r"has no 1280x720 px at 60 Hz; valid are 640x480 at 30 Hz; 1280x720 at 30 Hz"),
        (Capture(rate_hz=5), "has no 640x480 px at 5 Hz"),
        (Capture(locked=LockedLight("7", gain=1)), "has serial number '', but its light was locked on '7'"),
    ):
        camera.ask(asked)
        with pytest.raises(CameraError, match=words):
            camera.open()
        with pytest.raises(CameraError, match="is not open"):
            camera.read()

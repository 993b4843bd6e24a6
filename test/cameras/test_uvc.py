import threading
import time

import cv2
import numpy as np
import pytest

from bid_ros.cameras.uvc import UvcCamera
from bid_ros.errors import CameraError

RATE = 50.0
COLOURS = [(250, 10, 10), (10, 250, 10), (10, 10, 250), (240, 240, 10), (10, 240, 240), (240, 10, 240)]


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    path = tmp_path_factory.mktemp("video") / "colours.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), RATE, (64, 48))
    for colour in COLOURS:
        writer.write(np.full((48, 64, 3), colour[::-1], np.uint8))
    writer.release()
    return str(path)


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
    """Read until ``count`` frames have come or the video has ended."""
    frames, deadline = [], time.monotonic() + 5.0
    while len(frames) < count and not camera.ended and time.monotonic() < deadline:
        frame = camera.read()
        if frame is not None:
            frames.append(frame)
    return frames


def nearest_colour(frame):
    return int(np.argmin(np.abs(np.array(COLOURS) - frame.image.mean(axis=(0, 1))).sum(axis=1)))


def test_a_file_plays_in_rgb_and_ends(video, opened):
    camera = opened(video)
    frames = frames_of(camera, 100)
    colours = [nearest_colour(frame) for frame in frames]
    assert camera.ended
    assert frames[0].image.shape == (48, 64, 3) and frames[0].image.dtype == np.uint8
    assert colours == sorted(colours) and colours[0] == 0 and len(colours) >= 3
    assert np.abs(frames[0].image.astype(int) - COLOURS[0]).max() < 20


def test_a_file_plays_at_its_own_rate(video, opened):
    camera = opened(video)
    started = time.monotonic()
    frames_of(camera, 100)
    assert time.monotonic() - started >= (len(COLOURS) - 1) / RATE


def test_a_slow_reader_skips_frames(video, opened):
    camera = opened(video)
    late = time.monotonic() + 3.5 / RATE
    while time.monotonic() < late:
        time.sleep(0.001)
    assert nearest_colour(frames_of(camera, 1)[0]) >= 3


def test_a_looping_file_starts_again(video, opened):
    camera = opened(video, loop=True)
    frames = frames_of(camera, 3 * len(COLOURS))
    assert len(frames) == 3 * len(COLOURS)
    assert not camera.ended


def test_stamps_come_from_the_clock(video, opened):
    camera = opened(video, clock=lambda: 42)
    assert frames_of(camera, 1)[0].stamp_ns == 42


def test_close_wakes_a_reader_at_the_end(video, opened):
    camera = opened(video)
    frames_of(camera, 100)
    started = time.monotonic()
    threading.Timer(0.05, camera._closed.set).start()
    assert camera.read() is None
    assert time.monotonic() - started < 0.4


def test_a_reader_at_the_end_waits_instead_of_spinning(video, opened):
    camera = opened(video)
    frames_of(camera, 100)
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


def test_reading_before_open_or_after_close_is_refused(video):
    camera = UvcCamera(video)
    with pytest.raises(CameraError, match="is not open"):
        camera.read()
    camera.open()
    camera.close()
    camera.close()
    with pytest.raises(CameraError, match="is not open"):
        camera.read()

"""Bags in place of cameras, written by the ``rosbags`` library as any recorder would."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from bid_ros.cameras.bag import CAMERA, BagCamera
from bid_ros.core.errors import CameraError

SECOND = 1_000_000_000
STORE = get_typestore(Stores.ROS2_JAZZY)
FIRST, WRIST = "/camera/third_person/image", "/camera/wrist/image"
BEGIN = 1_700_000_000 * SECOND + 30_000_000  # 30 ms after a grid of 100 ms


def message(stamp_ns, level):
    types = STORE.types
    time = types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, SECOND))
    header = types["std_msgs/msg/Header"](time, "camera")
    pixels = np.full((6, 8, 3), level, np.uint8)
    return types["sensor_msgs/msg/Image"](header, 6, 8, "rgb8", 0, 24, pixels.ravel())


def write(path, counts, period_ns=SECOND // 10, plugin=StoragePlugin.MCAP):
    """Write so many images a topic; image i has the grey level i, and arrives 7 ms after its stamp."""
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        for topic, count in counts.items():
            connection = writer.add_connection(topic, "sensor_msgs/msg/Image", typestore=STORE)
            for index in range(count):
                stamp = BEGIN + index * period_ns
                data = STORE.serialize_cdr(message(stamp, index), "sensor_msgs/msg/Image")
                writer.write(connection, stamp + 7_000_000, data)
    return path


class Clock:
    """Wall time that passes only while a camera waits."""

    def __init__(self, now_ns):
        self.now_ns = now_ns

    def pass_by(self, seconds):
        self.now_ns += round(seconds * SECOND)

    def __call__(self):
        return self.now_ns


@pytest.fixture
def play(tmp_path):
    cameras = []

    def start(bag, topic, now_ns):
        clock = Clock(now_ns)
        camera = BagCamera(tmp_path / bag, topic, clock, clock.pass_by)
        camera.open()
        cameras.append(camera)
        return camera

    yield start
    for camera in cameras:
        camera.close()


def frames_of(camera, count):
    frames = []
    while len(frames) < count:
        frame = camera.read()
        if frame is not None:
            frames.append(frame)
    return frames


@pytest.mark.parametrize("plugin", list(StoragePlugin))
def test_images_come_at_their_recorded_pace_from_now_on_and_again_at_the_end(tmp_path, play, plugin):
    write(tmp_path / "bag", {FIRST: 26}, plugin=plugin)  # 2.6 s, of which two whole seconds play
    now = 1_800_000_000 * SECOND
    frames = frames_of(play("bag", FIRST, now), 45)
    stamps = [frame.stamp_ns for frame in frames]
    assert {later - sooner for sooner, later in pairwise(stamps)} == {SECOND // 10}
    assert now - SECOND // 5 <= stamps[0] <= now + SECOND // 10
    # The grid of the recording, 30 ms after that of wall time, is kept.
    assert all(stamp % (SECOND // 10) == 30_000_000 for stamp in stamps)
    levels = [int(frame.image[0, 0, 0]) for frame in frames]
    assert frames[0].image.shape == (6, 8, 3) and set(levels) == set(range(20))
    assert all(later == (sooner + 1) % 20 for sooner, later in pairwise(levels))


def test_cameras_of_one_bag_show_the_same_instant_whenever_they_are_opened(tmp_path, play):
    write(tmp_path / "bag", {FIRST: 40, WRIST: 25})
    now = 1_800_000_000 * SECOND
    shown = {
        topic: {frame.stamp_ns: int(frame.image[0, 0, 0]) for frame in frames_of(play("bag", topic, now + late), 30)}
        for topic, late in ((FIRST, 0), (WRIST, 777_000_000))
    }
    both = shown[FIRST].keys() & shown[WRIST].keys()
    assert len(both) > 15 and all(shown[FIRST][stamp] == shown[WRIST][stamp] for stamp in both)


def test_a_slow_reader_skips_images(tmp_path, play):
    write(tmp_path / "bag", {FIRST: 30})
    camera = play("bag", FIRST, 1_800_000_000 * SECOND)
    frames_of(camera, 1)
    camera._clock.now_ns += 10 * SECOND
    (frame,) = frames_of(camera, 1)
    assert 0 <= camera._clock() - frame.stamp_ns <= SECOND // 5


@pytest.mark.parametrize("address", ["runs/bag", "runs/bag:", ":/camera", "runs/bag:camera"])
def test_an_address_without_bag_and_topic_is_refused(tmp_path, address):
    with pytest.raises(CameraError, match=r"bag camera has address '.*'; valid is BAG:TOPIC"):
        CAMERA.build(address, tmp_path)


@pytest.mark.parametrize(
    ("counts", "topic", "sentence"),
    [
        ({FIRST: 20}, "/other", f"has no images on '/other'; valid are {FIRST}"),
        ({}, FIRST, "has no images on .*; valid are none"),
        ({FIRST: 9}, FIRST, "less than one second in which all of /camera/third_person/image have images"),
        ({FIRST: 30, WRIST: 5}, FIRST, "less than one second in which all of"),
        ({FIRST: 30, WRIST: 0}, WRIST, f"has no images on '{WRIST}' while the others have some"),
    ],
)
def test_a_bag_that_cannot_play_is_one_sentence(tmp_path, play, counts, topic, sentence):
    write(tmp_path / "bag", counts)
    with pytest.raises(CameraError, match=sentence):
        play("bag", topic, 1_800_000_000 * SECOND)


def test_a_bag_that_is_missing_or_broken_is_one_sentence(tmp_path, play):
    with pytest.raises(CameraError, match="nothing cannot be read: ") as caught:
        play("nothing", FIRST, 0)
    assert "\n" not in str(caught.value)
    folder = write(tmp_path / "bag", {FIRST: 30})
    file = next(folder.glob("*.mcap"))
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(CameraError, match="bag cannot be read: "):
        play("bag", FIRST, 0)


def test_reading_before_open_or_after_close_is_refused(tmp_path, play):
    write(tmp_path / "bag", {FIRST: 30})
    with pytest.raises(CameraError, match="is not open"):
        CAMERA.build(f"bag:{FIRST}", tmp_path).read()
    camera = play("bag", FIRST, 0)
    camera.close()
    camera.close()
    with pytest.raises(CameraError, match="is not open"):
        camera.read()

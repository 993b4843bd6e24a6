"""Recorded images are compressed byte by byte, and read like raw ones."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage, Image

from bid_ros.cameras.depth import read_image
from bid_ros.cameras.image import decode_image, encode_image
from bid_ros.core.errors import CameraError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.topics import COMPRESSED, COMPRESSED_IMAGE_TYPE, camera_topic
from bid_ros.formats import build_dataset
from bid_ros.recording.compression import find_codec, split_image
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter


@pytest.fixture(scope="module")
def picture():
    small = np.random.default_rng(3).integers(0, 256, (5, 6, 3), np.uint8)
    return np.asarray(cv2.resize(small, (61, 47), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def message(picture, frame="wrist"):
    found = Image(**encode_image(picture))
    found.header.frame_id, found.header.stamp.sec, found.header.stamp.nanosec = frame, 12, 34
    return found


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "abcd", "left/wrist"])
@pytest.mark.parametrize(("codec", "largest"), [("png", 0), ("jpeg", 20), ("jpeg:60", 60)])
def test_a_compressed_image_keeps_its_header_and_its_pixels(picture, frame, codec, largest):
    raw = message(picture, frame)
    packed = find_codec(codec).encode(serialize_message(raw))
    found = deserialize_message(packed, CompressedImage)
    assert found.header == raw.header
    assert found.format == f"rgb8; {codec.split(':')[0]} compressed bgr8"
    difference = np.abs(decode_image(found).astype(int) - picture)
    assert difference.max() <= largest
    assert len(serialize_message(found)) == len(packed), "aligned as ROS itself would"


def test_the_quality_of_jpeg_decides_its_size(picture):
    sizes = [len(find_codec(f"jpeg:{quality}").encode(serialize_message(message(picture)))) for quality in (30, 95)]
    assert sizes[0] < 0.6 * sizes[1]


def test_other_encodings_become_rgb(picture):
    raw = message(picture[..., ::-1])
    raw.encoding = "bgr8"
    found = deserialize_message(find_codec("png").encode(serialize_message(raw)), CompressedImage)
    assert (decode_image(found) == picture).all()


def test_fields_are_read_without_a_copy_of_the_pixels(picture):
    data = serialize_message(message(picture))
    header, fields = split_image(data)
    assert (fields.height, fields.width, fields.encoding, fields.step) == (47, 61, "rgb8", 183)
    assert isinstance(fields.data, memoryview) and fields.data.obj is data
    assert data.startswith(header) and header.endswith(b"wrist\0")


@pytest.mark.parametrize("text", ["gif", "jpeg:0", "jpeg:101", "png:3", "", "jpeg:"])
def test_an_unknown_codec_is_refused(text):
    with pytest.raises(RecordingError, match="valid are raw, png"):
        find_codec(text)


@pytest.mark.parametrize("data", [b"", b"\0\1\0\0", b"\0\1\0\0" + bytes(8) + b"\xff\xff\xff\x7f"])
def test_bytes_that_are_no_image_are_refused(data):
    with pytest.raises(CameraError, match="no image"):
        find_codec("png").encode(data)


def test_16_bits_of_brightness_and_a_torn_compressed_image_are_refused(picture):
    depth = message(picture)
    depth.encoding = "mono16"
    with pytest.raises(CameraError, match="mono16"):
        find_codec("png").encode(serialize_message(depth))
    with pytest.raises(CameraError, match="no whole image"):
        decode_image(CompressedImage(format="jpeg", data=b"\xff\xd8\xff"))


def record(run, bag, codec):
    """Record a run with its images compressed, as the recorder node does."""
    found = find_codec(codec)
    cameras = [camera_topic(name) for name in ("third_person", "wrist")]
    with BagWriter(bag) as writer:
        for name in cameras:
            definition = find_definition(COMPRESSED_IMAGE_TYPE)
            writer.add_topic(f"/{name}{COMPRESSED}", definition, encode=found.encode)
        others = {topic for _, topic, _ in run.ordered()} - set(cameras)
        for topic in others:
            run_add(writer, topic)
        for received, topic, item in run.ordered():
            name = f"/{topic}{COMPRESSED}" if topic in cameras else f"/{topic}"
            assert writer.write(name, received, serialize_message(item))
    return bag


def run_add(writer, topic):
    from bid_ros.core.topics import TOPICS

    writer.add_topic(f"/{topic}", find_definition(TOPICS[topic].type_name))


def test_rows_from_compressed_images_are_those_from_raw_ones(make_run, task, tmp_path):
    run = make_run()
    raw = build_dataset([run.write(tmp_path / "raw")], task)
    exact = build_dataset([record(run, tmp_path / "png", "png")], task)
    assert exact.sha256 == raw.sha256
    lossy = build_dataset([record(run, tmp_path / "jpeg", "jpeg:90")], task)
    assert lossy.rows == raw.rows and lossy.sha256 != raw.sha256


def test_the_name_of_raw_images_finds_compressed_ones_and_prefers_raw(make_run, tmp_path, kit):
    bag = record(make_run(seconds=0.3), tmp_path / "bag", "png")
    topic = camera_topic("wrist")
    with BagReader(bag) as reader:
        assert reader.recorded_name(topic) == f"/{topic}{COMPRESSED}"
        assert {item.topic for item in reader.messages([topic])} == {topic}
    with BagWriter(tmp_path / "both") as writer:
        kit.add_topic(writer, topic)
        writer.add_topic(f"/{topic}{COMPRESSED}", find_definition(COMPRESSED_IMAGE_TYPE))
    with BagReader(tmp_path / "both") as reader:
        assert reader.recorded_name(topic) == f"/{topic}"


def test_a_raw_topic_without_messages_gives_way_to_compressed_ones(make_run, task, tmp_path, kit):
    run = make_run()
    cameras = {camera_topic(name) for name in ("third_person", "wrist")}
    with BagWriter(tmp_path / "both") as writer:
        for name in cameras:
            kit.add_topic(writer, name)
            packed = find_definition(COMPRESSED_IMAGE_TYPE)
            writer.add_topic(f"/{name}{COMPRESSED}", packed, encode=find_codec("png").encode)
        for topic in {topic for _, topic, _ in run.ordered()} - cameras:
            run_add(writer, topic)
        for received, topic, item in run.ordered():
            name = f"/{topic}{COMPRESSED}" if topic in cameras else f"/{topic}"
            assert writer.write(name, received, serialize_message(item))
    assert build_dataset([tmp_path / "both"], task).sha256 == build_dataset([run.write(tmp_path / "raw")], task).sha256


def test_an_image_that_cannot_be_compressed_is_counted_and_the_rest_is_recorded(tmp_path, picture, kit):
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic("/image", find_definition(COMPRESSED_IMAGE_TYPE), encode=find_codec("png").encode)
        for number, encoding in enumerate(("rgb8", "32FC1", "rgb8")):
            item = message(picture)
            item.encoding = encoding
            writer.write("/image", number, serialize_message(item))
        writer.flush()
        assert writer.counts == {"/image": 2} and writer.dropped == {"/image": 1}
        assert "32FC1" in writer.problem
    with BagReader(tmp_path / "bag") as reader:
        assert [item.stamp_ns for item in reader.messages()] == [0, 2]


@pytest.mark.parametrize("codec", ["png", "jpeg:60"])
def test_distances_are_kept_whole_by_every_codec(codec):
    whole = np.random.default_rng(1).integers(0, 1 << 16, (47, 61, 1), np.uint16)
    raw = Image(**encode_image(whole))
    found = deserialize_message(find_codec(codec).encode(serialize_message(raw)), CompressedImage)
    assert found.format == "16UC1; png compressed"
    assert (read_image(Feature("front", "image", whole.shape, depth=(0.1, 2.0)), found) == whole).all()

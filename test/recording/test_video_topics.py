"""Image topics that are videos: the pictures of H.264 packets, also from the middle on."""

from itertools import pairwise
from types import SimpleNamespace

import av
import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import IMAGES
from bid_ros.recording.bag_topics import wrong_type
from bid_ros.recording.reader import BagReader

FRAMES, GROUP, STEP = 12, 5, 100_000_000
START = 1_700_000_000_000_000_000
KINDS = {
    "sensor_msgs/msg/CompressedImage": "",
    "foxglove_msgs/msg/CompressedVideo": "builtin_interfaces/Time timestamp\nstring frame_id\nuint8[] data\n"
    "string format",
    "ffmpeg_image_transport_msgs/msg/FFMPEGPacket": "std_msgs/Header header\nint32 width\nint32 height\n"
    "string encoding\nuint64 pts\nuint8 flags\nbool is_bigendian\nuint8[] data",
}


def packets():
    """Pictures of one grey each, that of picture k is 20 k, as H.264; every fifth stands for itself."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.framerate = 48, 32, "yuv420p", 10
    encoder.options = {"g": str(GROUP), "tune": "zerolatency", "crf": "5", "x264-params": "annexb=1:repeat-headers=1"}
    found = []
    for number in range(FRAMES):
        picture = np.full((32, 48, 3), 20 * number, np.uint8)
        found += encoder.encode(av.VideoFrame.from_ndarray(picture, format="rgb24"))
    return [bytes(packet) for packet in (*found, *encoder.encode(None))]


def write(path, kind, datas, form="h264", topic="/cam/video"):
    types = get_typestore(Stores.ROS2_JAZZY)
    if KINDS.get(kind):
        types.register(get_types_from_msg(KINDS[kind], kind))
    made = types.types
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        video = writer.add_connection(topic, kind, typestore=types)
        other = writer.add_connection("/other", "std_msgs/msg/String", typestore=types)
        for number, data in enumerate(datas):
            stamp = made["builtin_interfaces/msg/Time"](*divmod(START + number * STEP, 10**9))
            fields = {
                "header": made["std_msgs/msg/Header"](stamp, "cam"), "timestamp": stamp, "frame_id": "cam",
                "data": np.frombuffer(data, np.uint8), "format": form, "encoding": form, "width": 48, "height": 32,
                "pts": number, "flags": 0, "is_bigendian": False,
            }  # fmt: skip
            message = made[kind](**{name: fields[name] for name, _ in types.fielddefs[kind][1]})
            received = START + number * STEP + 7_000_000
            writer.write(video, received, types.serialize_cdr(message, kind))
            text = made["std_msgs/msg/String"](str(number))
            writer.write(other, received + 1, types.serialize_cdr(text, "std_msgs/msg/String"))
    return path


@pytest.mark.parametrize("kind", list(KINDS))
def test_packets_become_pictures_in_order_with_the_other_messages(tmp_path, kind):
    with BagReader(write(tmp_path / "bag", kind, packets())) as reader:
        assert wrong_type(reader, "/cam/video", IMAGES) == ""
        every = list(reader.messages(["/cam/video", "/other"]))
        assert [item.topic for item in every] == ["/cam/video", "/other"] * FRAMES
        assert all(one.stamp_ns <= other.stamp_ns for one, other in pairwise(every))
        # From the middle of a group on: the picture is decoded from the packets before.
        later = list(reader.messages(["/cam/video"], START + 8 * STEP, START + 11 * STEP))
    for number, item in [*enumerate(every[::2]), *enumerate(later, 8)]:
        message = item.message
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == START + number * STEP
        assert (message.encoding, message.height, message.width) == ("rgb8", 32, 48)
        assert np.abs(np.frombuffer(message.data, np.uint8).astype(int) - 20 * number).max() <= 4
    assert len(later) == 3


def test_what_is_no_video_says_so(tmp_path):
    kind = "foxglove_msgs/msg/CompressedVideo"
    for name, form, said in (
        ("a", "h264", r"no packet of /cam/video in bag .*/a can be decoded as h264 \("),
        ("b", "theora", "/cam/video of bag .*/b has the codec 'theora'; valid are h264, hevc, av1, vp9"),
    ):
        bag = write(tmp_path / name, kind, [b"no video"] * 3, form)
        with BagReader(bag) as reader, pytest.raises(RecordingError, match=said):
            list(reader.messages(["/cam/video"]))
    # A picture by itself stays one.
    with BagReader(write(tmp_path / "c", "sensor_msgs/msg/CompressedImage", [b"jpeg"], "jpeg")) as reader:
        (item,) = reader.messages(["/cam/video"])
        assert item.message.format == "jpeg" and not isinstance(item.message, SimpleNamespace)


def test_a_video_below_an_image_is_found_by_its_type(tmp_path):
    """As ffmpeg_image_transport publishes it, whose topic is called ``ffmpeg`` whatever its codec."""
    kind = "ffmpeg_image_transport_msgs/msg/FFMPEGPacket"
    with BagReader(write(tmp_path / "a", kind, packets(), "libx264", "/cell/cam/image_raw/ffmpeg")) as reader:
        for topic in ("/cell/cam/image_raw", "cam/image_raw"):
            assert reader.recorded_name(topic) == "/cell/cam/image_raw/ffmpeg"
            assert len(list(reader.messages([topic]))) == FRAMES and not wrong_type(reader, topic, IMAGES)
        assert reader.recorded_name("/cell/cam") == "/cell/cam" and reader.recorded_name("raw") == "/raw"
    with BagReader(write(tmp_path / "b", "std_msgs/msg/String", [], "", "/cam/image_raw/ffmpeg")) as reader:
        assert reader.recorded_name("/cam/image_raw") == "/cam/image_raw", "a name alone makes no video"

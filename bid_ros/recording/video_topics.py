"""Topics of images that are the packets of a video (H.264 and others), and their pictures.

A packet alone is no picture: it says what changes after the packets before it. So each reading begins at the last one
that a decoder can begin with.
"""

import re
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from bid_ros.cameras.image import encode_image
from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra
from bid_ros.core.topics import COMPRESSED_IMAGE_TYPE

Reader = Any  # a BagReader, whose module imports this one
VIDEO_TYPES: Final = ("foxglove_msgs/msg/CompressedVideo", "ffmpeg_image_transport_msgs/msg/FFMPEGPacket")
# Names of the field "format" or "encoding", of codecs and encoders, by the codec that reads them.
CODECS: Final = {"264": "h264", "265": "hevc", "hevc": "hevc", "av1": "av1", "vp9": "vp9"}
# Begin of a set of parameters, which encoders put before each picture that stands for itself.
BEGINS: Final = {"h264": re.compile(rb"\x00\x00\x01[\x07\x27\x47\x67]"), "hevc": re.compile(rb"\x00\x00\x01[\x42\x43]")}


def video_below(reader: Reader, name: str, end: str) -> str:
    """Return the one topic with messages below an image's that is a video, whatever it is called; empty: there is none.

    Args:
        reader: of the bag.
        name: of the image's topic.
        end: what the image's topic may also end with, a relative name; another one, and an empty one, mean nothing.
    """
    ends = (f"/{end}",) if end and end[0] != "/" else ()
    videos = [topic for topic, kind in reader.topics.items() if kind in VIDEO_TYPES and reader.counts.get(topic)]
    found = [topic for topic in videos if (above := topic.rpartition("/")[0]) == name or above.endswith(ends)]
    return found[0] if len(found) == 1 else ""


def codec_of_topic(reader: Reader, topic: str) -> str:
    """Return the codec of a bag's topic that is a video, as its first message says; empty: it is none, or is empty.

    Raises:
        RecordingError: its type is one of videos, and its codec is not known.
    """
    type_name = reader.topics.get(reader.recorded_name(topic))
    if type_name not in (*VIDEO_TYPES, COMPRESSED_IMAGE_TYPE):
        return ""
    first = next(reader.raw([topic]), None)
    if first is None:
        return ""
    message = reader.decode(first)
    said = str(message.format if hasattr(message, "format") else message.encoding).lower()
    for name, codec in CODECS.items():
        if name in said.partition(";")[0]:
            return codec
    if type_name in VIDEO_TYPES:
        valid = ", ".join(dict.fromkeys(CODECS.values()))
        raise RecordingError(f"{topic} of bag {reader.path} has the codec '{said}'; valid are {valid}")
    return ""


def pictures(
    reader: Reader, topic: str, codec: str, start_ns: int | None, stop_ns: int | None
) -> Iterator[tuple[int, Any]]:
    """Decode a video, from the last packet on with which a decoder can begin.

    Args:
        reader: of the bag.
        topic: of the video.
        codec: see :func:`codec_of_topic`. Of others than H.264 and HEVC all packets are decoded.
        start_ns, stop_ns: as :meth:`BagReader.messages`.

    Yields:
        Time of receipt and picture, as a ``sensor_msgs/Image`` in rgb8 with the packet's header. Packets from which
        no picture comes, as before the first that stands for itself, yield nothing.

    Raises:
        RecordingError: PyAV is not installed, or no packet is of the codec.
    """
    begin = start_ns
    if start_ns is not None:
        before = reader.raw([topic], None, start_ns + 1) if codec in BEGINS else ()
        begin = max((item.stamp_ns for item in before if BEGINS[codec].search(item.data)), default=None)
    packets = ((item.stamp_ns, reader.decode(item)) for item in reader.raw([topic], begin, stop_ns))
    for stamp, picture in _decoded(packets, codec, f"{topic} in bag {reader.path}"):
        if start_ns is None or stamp >= start_ns:
            yield stamp, picture


def _decoded(packets: Iterable[tuple[int, Any]], codec: str, topic: str) -> Iterator[tuple[int, Any]]:
    with extra("data", f"the video {topic}", RecordingError):
        import av
    decoder = av.CodecContext.create(codec, "r")
    decoder.thread_count = 1  # a picture comes with its packet, not some packets later
    waiting: dict[int, tuple[int, Any]] = {}
    shown, problem = 0, ""
    for number, (stamp, message) in enumerate(packets):
        waiting[number] = (stamp, _header(message))
        packet = av.Packet(bytes(message.data))
        packet.pts = packet.dts = number
        try:
            frames = decoder.decode(packet)
        except av.error.FFmpegError as error:
            problem = str(error)
            continue
        for frame in frames:
            shown += 1
            yield _picture(frame, waiting)
    for frame in decoder.decode(None) if waiting else ():
        shown += 1
        yield _picture(frame, waiting)
    if waiting and not shown:
        raise RecordingError(f"no packet of {topic} can be decoded as {codec} ({problem or 'none is a keyframe'})")


def _picture(frame: Any, waiting: dict[int, tuple[int, Any]]) -> tuple[int, Any]:
    stamp, header = waiting[frame.pts]
    for number in [number for number in waiting if number < frame.pts]:
        del waiting[number]
    return stamp, SimpleNamespace(header=header, **encode_image(np.asarray(frame.to_ndarray(format="rgb24"))))


def _header(message: Any) -> Any:
    """Return the header of a packet; foxglove's type has its fields without one."""
    known = getattr(message, "header", None)
    return known or SimpleNamespace(stamp=message.timestamp, frame_id=message.frame_id)

"""Images of a bag in place of a camera, for plumbing and tests."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bid_ros.cameras.base import CameraDescriptor, Frame
from bid_ros.cameras.image import decode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import CameraError

_TYPE: Final = "sensor_msgs/msg/Image"
_WAIT_S: Final = 0.5
_LATE_NS: Final = 200_000_000  # an image that is due for longer is skipped, as a camera's would be


class BagCamera:
    """The images of one topic of a rosbag2 bag, at their recorded pace, in a loop.

    What plays are the whole seconds in which every image topic of the bag has images, and stamps are moved by whole
    seconds. So cameras of one bag are paired as they were recorded, and who was on the grid of wall time still is.

    Args:
        bag: folder or MCAP file.
        topic: of ``sensor_msgs/msg/Image``.
        clock: ROS system time in nanoseconds.
        sleep: waits for so many seconds.
    """

    def __init__(
        self,
        bag: Path,
        topic: str,
        clock: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bag, self._topic, self._clock, self._sleep = bag, topic, clock, sleep
        self._stack = ExitStack()
        self._reader: Any = None
        self._frames: Iterator[tuple[int, bytes]] = iter(())
        self._next: tuple[int, bytes] | None = None

    def open(self) -> None:
        """Open the bag; raises CameraError if it cannot be read, or has not one second of images on the topic."""
        from rosbags.highlevel import AnyReader

        try:
            self._reader = self._stack.enter_context(AnyReader([self._bag]))
            begin_ns, length_ns = self._window()
        except CameraError:
            self.close()
            raise
        except Exception as error:  # damaged bytes can make a decoder raise anything
            self.close()
            raise CameraError(f"bag {self._bag} cannot be read: {' '.join(str(error).split())}") from error
        self._frames = self._play(begin_ns, length_ns)

    def read(self) -> Frame | None:
        """Return the next image, as :class:`bid_ros.cameras.base.Camera` says; CameraError if it is no picture."""
        if self._reader is None:
            raise CameraError(f"bag {self._bag} is not open")
        while self._next is None or self._clock() - self._next[0] > _LATE_NS:
            self._next = next(self._frames)
        due_ns, raw = self._next
        wait_ns = due_ns - self._clock()
        self._sleep(min(max(wait_ns / NANOSECONDS, 0.0), _WAIT_S))
        if wait_ns > _WAIT_S * NANOSECONDS:
            return None
        self._next = None
        return Frame(due_ns, decode_image(self._reader.deserialize(raw, _TYPE), self._topic))

    def close(self) -> None:
        """Close the bag; doing it twice is allowed."""
        self._stack.close()
        self._reader = self._next = None

    def _window(self) -> tuple[int, int]:
        """Return begin and length in ns of the whole seconds in which every image topic has images."""
        connections = [item for item in self._reader.connections if item.msgtype == _TYPE]
        stamps: dict[str, list[int]] = {item.topic: [] for item in connections}
        for item, _, raw in self._reader.messages(connections):
            stamps[item.topic].append(_stamp_ns(raw))
        if self._topic not in stamps:
            raise CameraError(
                f"bag {self._bag} has no images on '{self._topic}'; valid are {', '.join(stamps) or 'none'}"
            )
        played = [sorted(values) for values in stamps.values() if len(values) > 1]
        begin = max((values[0] for values in played), default=0)
        # The last image is shown for as long as those before it were.
        ends = [values[-1] + (values[-1] - values[0]) // (len(values) - 1) for values in played]
        length = (min(ends, default=0) - begin) // NANOSECONDS * NANOSECONDS
        if length < NANOSECONDS:
            raise CameraError(
                f"bag {self._bag} has less than one second in which all of {', '.join(stamps)} have images"
            )
        if not any(begin <= stamp < begin + length for stamp in stamps[self._topic]):
            raise CameraError(
                f"bag {self._bag} has no images on '{self._topic}' while others have some; valid is a topic that has"
            )
        return begin, length

    def _play(self, begin_ns: int, length_ns: int) -> Iterator[tuple[int, bytes]]:
        """Yield when each image is due, which is its stamp, and its message, without end."""
        own = [item for item in self._reader.connections if item.topic == self._topic]
        shift = (self._clock() - begin_ns) // length_ns * length_ns
        while True:
            for _, _, raw in self._reader.messages(own):
                stamp = _stamp_ns(raw)
                if begin_ns <= stamp < begin_ns + length_ns:
                    yield stamp + shift, raw
            shift += length_ns


def _stamp_ns(raw: bytes) -> int:
    """Return the stamp of a serialised message that begins with a header: CDR, after four bytes of its own header."""
    seconds, nanoseconds = struct.unpack_from("<iI" if raw[1] & 1 else ">iI", raw, 4)
    return int(seconds) * NANOSECONDS + int(nanoseconds)


def _build(address: str, folder: Path) -> BagCamera:
    bag, _, topic = address.rpartition(":")
    if not bag or not topic.startswith("/"):
        raise CameraError(
            f"bag camera has address '{address}'; valid is BAG:TOPIC, for example runs/table/bag:/camera/wrist/image"
        )
    return BagCamera(folder / bag, topic)


CAMERA = CameraDescriptor("bag", _build)

"""Pictures of the cameras for a person who watches: larger than those of the policy, and never in their way."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import cv2
from sensor_msgs.msg import CompressedImage

from bid_ros.cameras.image import Crop, Image, resize_crop
from bid_ros.core.topics import VIEWS, camera_view_topic, optical_frame
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.ros_messages import header

LONGEST_PX: Final = 480  # of a picture of a device
RENDERED_PX: Final = 288  # of one of the twin: 2 to 3 ms
PERIOD_NS: Final = 80_000_000  # at least, between two pictures of a camera: 10 a second of one with 10, 20 or 30 Hz
QUALITY: Final = 80  # of JPEG
FORMAT: Final = "rgb8; jpeg compressed bgr8"


class CameraViews:
    """Publishes a picture of each camera while somebody listens. They are packed in a thread of their own.

    A picture that waits for longer than the next one takes is dropped. Any thread may use it.

    Args:
        node: that publishes.
        cameras: their names.
        clock: steady time in ns.
    """

    def __init__(self, node: BidNode, cameras: Iterable[str], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._prefix, self._clock = node.frame_prefix, clock
        self._publishers: dict[str, Any] = {name: node.advertise(camera_view_topic(name), VIEWS) for name in cameras}
        self._taken_ns = dict.fromkeys(self._publishers, 0)
        self._waiting: dict[str, tuple[int, Image, Crop | None]] = {}
        self._changed, self._closed = threading.Condition(), False

    def wanted(self, camera: str) -> bool:
        """Whether somebody listens to a camera's pictures, and its last one is long enough ago."""
        due = self._clock() - self._taken_ns[camera] >= PERIOD_NS
        return due and self._publishers[camera].get_subscription_count() > 0

    def offer(self, camera: str, stamp_ns: int, image: Image, crop: Crop | None = None) -> None:
        """Publish a picture as soon as there is time for it. Nobody may write into ``image`` any more.

        Args:
            camera: its name.
            stamp_ns: of the image.
            image: ``(height, width, 3)`` rgb8.
            crop: part of it that is shown, as in :func:`bid_ros.cameras.image.resize_crop`.
        """
        self._taken_ns[camera] = self._clock()
        with self._changed:
            self._waiting[camera] = stamp_ns, image, crop
            self._changed.notify()

    def run(self) -> None:
        """Pack and publish until :meth:`close`. Raises CameraError if a crop leaves its image."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                camera = next(iter(self._waiting))  # whose last picture is the longest ago
                stamp_ns, image, crop = self._waiting.pop(camera)
            message = CompressedImage(format=FORMAT, data=_packed(image, crop))
            message.header = header(stamp_ns, self._prefix + optical_frame(camera))
            self._publishers[camera].publish(message)

    def close(self) -> None:
        """End :meth:`run`."""
        with self._changed:
            self._closed = True
            self._changed.notify()


def rendered_size(height: int, width: int) -> tuple[int, int]:
    """Return height and width at which the twin's pictures of a camera of the policy are rendered, px."""
    larger = max(1.0, RENDERED_PX / max(height, width))
    return round(larger * height), round(larger * width)


def _packed(image: Image, crop: Crop | None) -> bytes:
    """Return what a crop shows as JPEG, its longer side ``LONGEST_PX`` at most, with its own aspect ratio."""
    height, width = image.shape[:2] if crop is None else (crop[3], crop[2])
    smaller = min(1.0, LONGEST_PX / max(height, width))
    shown = resize_crop(image, crop, (max(1, round(smaller * height)), max(1, round(smaller * width))))
    _, data = cv2.imencode(".jpg", shown[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return bytes(data)

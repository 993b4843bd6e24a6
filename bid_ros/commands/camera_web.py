"""Live images of cameras in a browser. What one of them lacks is said, and the others go on."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.core.errors import CameraError
from bid_ros.core.topics import source_topic

if TYPE_CHECKING:
    from bid_ros.cameras.config import CameraConfig

JOIN_S: Final = 2.0
Show = Callable[["CameraConfig", int, Any], None]
"""Takes a camera, the time of an image, ns since 1970, and the image ``(height, width, 3)`` rgb."""


class LiveCameras:
    """Reads devices in threads of their own, and listens to topics.

    Args:
        cameras: those that are shown; what the twin renders is left out.
        folder: of the camera file.
        show: takes each image.
        say: tells a person a sentence about a camera, once.
    """

    def __init__(self, cameras: Sequence["CameraConfig"], folder: Path, show: Show, say: Callable[[str], None]) -> None:
        self._devices = [camera for camera in cameras if camera.source not in ("topic", "twin")]
        self._topics: dict[str, list[CameraConfig]] = {}
        for camera in cameras:
            if camera.source == "topic":
                self._topics.setdefault(camera.address, []).append(camera)
        self._folder, self._show, self._say = folder, show, say
        self._said: set[str] = set()

    def run(self, namespace: str, ended: threading.Event) -> None:
        """Show them until ``ended`` is set, or Ctrl-C."""
        threads = [threading.Thread(target=self._read, args=(camera, ended), daemon=True) for camera in self._devices]
        for thread in threads:
            thread.start()
        try:
            if self._topics:
                from bid_ros.nodes.following import follow

                follow({name: source_topic(name) for name in self._topics}, self._heard, namespace, ended)
            else:
                ended.wait()
        finally:
            ended.set()
            for thread in threads:
                thread.join(timeout=JOIN_S)

    def _read(self, camera: "CameraConfig", ended: threading.Event) -> None:
        from bid_ros.cameras.config import open_camera

        with self._named(camera):
            device = open_camera(camera, self._folder)
            with closing(device):
                device.open()
                while not ended.is_set():
                    if (frame := device.read()) is not None:
                        self._show(camera, frame.stamp_ns, frame.image)

    def _heard(self, topic: str, stamp_ns: int, message: Any) -> None:
        from bid_ros.cameras.depth import read_picture

        for camera in self._topics[topic]:
            with self._named(camera):
                self._show(camera, stamp_ns, read_picture(message, topic))

    @contextmanager
    def _named(self, camera: "CameraConfig") -> Iterator[None]:
        """Say what is wrong with a camera, once and not at every image."""
        try:
            yield
        except CameraError as error:
            line = f"{camera.name}: {error}"
            if line not in self._said:
                self._said.add(line)
                self._say(line)

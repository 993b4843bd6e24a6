"""Sources of images by name."""

from typing import Final

from bid_ros.cameras.base import CameraDescriptor
from bid_ros.core.errors import CameraError
from bid_ros.core.registry import Registry, collect

CAMERAS: Final[Registry[CameraDescriptor]] = Registry(
    "camera source", "bid_ros.cameras", lambda: collect(__package__, "CAMERA"), CameraError
)
BY_NODE: Final = ("twin", "topic")  # sources that the camera node reads itself: they are no devices


def check_source(camera: str, source: str) -> None:
    """Raise CameraError unless there is a source of this name, and it can be used."""
    if source in BY_NODE:
        return
    names = CAMERAS.names()
    if source not in names:
        raise CameraError(f"camera '{camera}' has source '{source}'; valid are {', '.join((*BY_NODE, *names))}")
    CAMERAS.find(source)

"""Which cameras are connected: RealSense and those of Video4Linux. None of them streams for it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bid_ros.cameras.modes import modes_text
from bid_ros.cameras.realsense import colour_profiles, library, told
from bid_ros.cameras.v4l2 import VideoDevice, VideoNode, video_nodes
from bid_ros.core.errors import CameraError

INTEL: Final = "8086"  # USB vendor
SLOW_USB: Final = "on USB 2: few sizes and rates; valid is a port and a cable of USB 3"


@dataclass(frozen=True)
class FoundCamera:
    """A camera that is connected.

    Attributes:
        source, address: what ``cameras.yaml`` calls it.
        name: of the model.
        serial: serial number; empty: it has none.
        usb: how fast its connection is.
        firmware: its version; empty: it does not say.
        modes: sizes and rates.
        problem: what a person should know; empty if all is well.
    """

    source: str
    address: str
    name: str
    serial: str = ""
    usb: str = ""
    firmware: str = ""
    modes: str = ""
    problem: str = ""


def realsense_cameras(devices: Iterable[Any] | None = None) -> list[FoundCamera]:
    """Return the RealSense devices.

    Args:
        devices: of the library; None: those that are connected.

    Raises:
        CameraError: the library is not installed, or fails.
    """
    rs = library("the list of RealSense cameras")
    try:
        found = rs.context().query_devices() if devices is None else devices
        return _named_once([_realsense(device) for device in found])
    except RuntimeError as error:
        raise CameraError(f"RealSense cameras cannot be listed: {' '.join(str(error).split())}") from error


def _realsense(device: Any) -> FoundCamera:
    serial, usb = told(device, "serial_number"), told(device, "usb_type_descriptor")
    modes = modes_text(mode for mode, _, _ in colour_profiles(device))
    slow = SLOW_USB if usb.startswith("2") else ""
    firmware = told(device, "firmware_version")
    return FoundCamera("realsense", serial, told(device, "name"), serial, usb and f"USB {usb}", firmware, modes, slow)


def uvc_cameras(nodes: Sequence[VideoNode] | None = None) -> list[FoundCamera]:
    """Return the devices of Video4Linux that deliver images; ``nodes`` are those of the kernel by default."""
    found = []
    for node in video_nodes() if nodes is None else nodes:
        speed = node.speed and f"{node.speed} Mbit/s"
        camera = FoundCamera("uvc", node.lasting, node.name, node.serial, speed)
        try:
            with VideoDevice(node.path) as device:
                if not device.captures():
                    continue
                camera = replace(camera, modes=modes_text({mode for _, mode in device.modes()}))
        except CameraError as error:
            camera = replace(camera, problem=str(error))
        if node.vendor == INTEL and "RealSense" in node.name:
            camera = replace(camera, problem="a RealSense: source realsense, with its serial number, takes its colour")
        found.append(camera)
    return _named_once(found)


def _named_once(found: list[FoundCamera]) -> list[FoundCamera]:
    """Return cameras with a sentence at those that share a serial number with another model or port."""
    count = Counter(camera.serial for camera in found if camera.serial and not camera.problem)
    return [
        replace(
            camera, problem=f"{count[camera.serial]} cameras have this serial number; valid is {_otherwise(camera)}"
        )
        if count[camera.serial] > 1 and not camera.problem
        else camera
        for camera in found
    ]


def _otherwise(camera: FoundCamera) -> str:
    return "its path below /dev/v4l/by-path" if camera.source == "uvc" else "one of them at a time"

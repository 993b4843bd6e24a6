"""The camera file: where the image of each camera of a task comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from bid_ros.cameras.base import Camera
from bid_ros.cameras.model import CameraModel
from bid_ros.errors import CameraError
from bid_ros.rotation import matrix_from_quaternion

SOURCES: Final = ("twin", "topic", "uvc", "realsense")


@dataclass(frozen=True)
class CameraConfig:
    """Source of one camera.

    Attributes:
        name: the task's feature name.
        source: ``twin``, ``topic`` (any ROS camera driver), ``uvc`` (device number, path or video file)
            or ``realsense``.
        address: topic, device or serial number; empty for the twin.
        crop: (left, top, width, height) in px of the delivered image, before the one resize; None = the whole image.
        position, quaternion: pose of the optical frame in the base frame, m and xyzw (camera_to_base), of a fixed
            camera that decisions are drawn over; None = not calibrated.
        fovy: vertical field of view in degrees of the cropped image.
    """

    name: str
    source: str
    address: str = ""
    crop: tuple[int, int, int, int] | None = None
    position: tuple[float, ...] | None = None
    quaternion: tuple[float, ...] | None = None
    fovy: float = 60.0

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise CameraError(f"camera '{self.name}' has source '{self.source}'; valid are {', '.join(SOURCES)}")
        if self.source != "twin" and not self.address:
            raise CameraError(f"camera '{self.name}' has no address; a {self.source} camera needs one")
        if self.crop is not None and (len(self.crop) != 4 or min(self.crop) < 0 or min(self.crop[2:]) < 1):
            raise CameraError(f"camera '{self.name}' has crop {self.crop}; valid is [left, top, width, height] in px")
        if (self.position is None) != (self.quaternion is None):
            raise CameraError(f"camera '{self.name}' has half a calibration; valid is position and quaternion, or none")
        if len(self.position or (0, 0, 0)) != 3 or len(self.quaternion or (0, 0, 0, 1)) != 4:
            raise CameraError(f"camera '{self.name}' has a calibration of a wrong size; valid is 3 and 4 numbers")

    def model(self, width: int, height: int) -> CameraModel | None:
        """Pinhole model for images of this size in px, None if the camera is not calibrated."""
        if self.position is None or self.quaternion is None:
            return None
        rotation = matrix_from_quaternion(self.quaternion)
        return CameraModel(np.array(self.position), rotation, self.fovy, width, height)


def load_cameras(path: str | Path, names: Sequence[str]) -> dict[str, CameraConfig]:
    """Read a camera file that must hold exactly the cameras ``names``.

    Raises:
        CameraError: the file is missing or not YAML, a camera is missing or unknown, or a value is impossible.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise CameraError(f"camera file {path} does not exist") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CameraError(f"camera file {path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or set(content) != set(names):
        found = sorted(content) if isinstance(content, dict) else content
        raise CameraError(f"camera file {path} holds {found}; the task's cameras are {', '.join(names)}")
    return {name: _camera(path, name, content[name]) for name in names}


def _camera(path: Path, name: str, values: Any) -> CameraConfig:
    valid = [item.name for item in fields(CameraConfig) if item.name != "name"]
    if not isinstance(values, dict) or not set(values) <= set(valid):
        raise CameraError(f"camera file {path}: '{name}' has {values}; valid fields are {', '.join(valid)}")
    try:
        numbers = {
            key: tuple(kind(value) for value in values[key])
            for key, kind in (("crop", int), ("position", float), ("quaternion", float))
            if values.get(key) is not None
        }
        return CameraConfig(
            name=name,
            source=str(values.get("source", "")),
            address="" if values.get("address") is None else str(values["address"]),  # a device number may be 0
            fovy=float(values.get("fovy", 60.0)),
            **numbers,  # type: ignore[arg-type]
        )
    except (TypeError, ValueError) as error:
        raise CameraError(f"camera file {path}: '{name}' has a value of the wrong type: {error}") from error


def open_camera(config: CameraConfig) -> Camera:
    """Return the device of a ``uvc`` or ``realsense`` camera, not yet open."""
    if config.source == "uvc":
        from bid_ros.cameras.uvc import UvcCamera

        return UvcCamera(config.address)
    if config.source == "realsense":
        from bid_ros.cameras.realsense import RealSenseCamera

        return RealSenseCamera(config.address)
    raise CameraError(f"camera '{config.name}' of source '{config.source}' is no device to open")

"""The camera file: where the image of each camera of a task comes from."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from bid_ros.cameras.base import AdjustableCamera, Camera, Capture, LockedLight
from bid_ros.cameras.image import Crop
from bid_ros.cameras.lens import Lens
from bid_ros.cameras.model import CameraModel
from bid_ros.cameras.registry import BY_NODE, CAMERAS, check_source
from bid_ros.core.errors import CameraError
from bid_ros.core.feature import SOURCE, Feature
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.core.settings import BY_CALLER, Quaternion, Vector3, list_of, parse_with_twin, read_yaml, settings

DEFAULT_FOVY: Final = 60.0  # degrees, to draw over the image of a camera whose field of view is not given

TOPIC_NAME: Final = SOURCE["topic"]


def _as_text(address: Any) -> Any:
    if address is None:
        return ""
    return str(address) if type(address) is int else address  # a device number


def _as_date(date: str) -> str:
    try:
        datetime.fromisoformat(date)
    except ValueError:
        raise ValueError("a date as 2026-03-14, or with a time as 2026-03-14T15:09:26+00:00") from None
    return date


Date = Annotated[str, BeforeValidator(str, json_schema_input_type=str), AfterValidator(_as_date)]
"""A date, perhaps with a time, as text: YAML reads an unquoted one as a date."""


@settings(error=CameraError)
class CalibrationRecord:
    """How the pose of a camera was measured, by ``bid calibrate``.

    Attributes:
        date: of the last image.
        images: number that agreed with each other.
        error_px: px, distance below which nine of ten corners lay from where they should be.
        error_mm, error_deg: standard error of position and angle.
        board_position, board_quaternion: where the board was, m and xyzw: in the base frame for a camera at the wrist,
            in the tool's frame for a fixed one. ``bid calibrate check`` compares with it.
    """

    date: Date
    images: Annotated[int, Field(ge=1)]
    error_px: Annotated[float, Field(ge=0)]
    error_mm: Annotated[float, Field(ge=0)]
    error_deg: Annotated[float, Field(ge=0)]
    board_position: Vector3
    board_quaternion: Quaternion


_Near = Annotated[float, Field(ge=-10, le=10)]
CameraPlace = Annotated[tuple[_Near, _Near, _Near], list_of(3, minimum=-10, maximum=10)]
"""Of a camera that sees the arm, m: what is farther away is in another unit."""


@settings(error=CameraError)
class CameraConfig:
    """Source of one camera.

    Attributes:
        name: the task's feature name.
        source: ``twin``, ``topic`` (any ROS camera driver) or a device in :data:`bid_ros.cameras.registry.CAMERAS`.
        address: topic, device, serial number or file; empty for the twin.
        crop: (left, top, width, height) in px of the delivered image, before the one resize. None = the whole image.
        position, quaternion: pose of the optical frame, m and xyzw (camera to ``frame``). Decisions are drawn over a
            fixed camera that has it. None = not calibrated.
        fovy: vertical field of view in degrees of the cropped image. None = not known.
        frame: what the camera is fixed to: ``base``, or ``tool`` for one at the wrist.
        lens: of the whole image, as measured. None = an ideal one with ``fovy``.
        calibration: how position and quaternion were measured. None: not by ``bid calibrate``.
        moved: date at which a person has moved the camera last; an older calibration is refused. None: not known.
        size: width and height in px that a device is asked for. None: its own choice; of a RealSense 640x480.
        rate_hz: images a second that a device is asked for. None: its own choice; of a RealSense 30.
        locked: exposure, gain and white balance of a device, by ``bid cameras --lock``. None: it chooses them.
    """

    name: Annotated[str, BY_CALLER]
    source: Annotated[str, Field(examples=["twin", "topic", "realsense", "uvc", "bag"])]
    address: Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | int | None)] = ""
    crop: Annotated[Crop, list_of(4, "integer")] | None = None
    position: CameraPlace | None = None
    quaternion: Quaternion | None = None
    fovy: Annotated[float, Field(ge=4, le=179)] | None = None  # below 4 it is in radians
    frame: Literal["base", "tool"] = "base"
    lens: Lens | None = None
    calibration: CalibrationRecord | None = None
    moved: Date | None = None
    size: Annotated[tuple[int, int], list_of(2, "integer")] | None = None
    rate_hz: Annotated[float, Field(gt=0, le=1000)] | None = None
    locked: LockedLight | None = None

    def __post_init__(self) -> None:
        check_source(self.name, self.source)
        if self.source != "twin" and not self.address:
            raise CameraError(f"camera '{self.name}' has no address; a {self.source} camera needs one")
        pattern, valid = TOPIC_NAME
        if self.source == "topic" and not re.fullmatch(pattern, self.address, re.ASCII):
            raise CameraError(f"camera '{self.name}' has the topic '{self.address}'; valid is {valid}")
        if self.crop is not None and (min(self.crop) < 0 or min(self.crop[2:]) < 1):
            raise CameraError(f"camera '{self.name}' has crop {self.crop}; valid is [left, top, width, height] in px")
        if (self.position is None) != (self.quaternion is None):
            raise CameraError(f"camera '{self.name}' has half a calibration; valid is position and quaternion, or none")
        if self.capture != Capture() and self.source in BY_NODE:
            raise CameraError(
                f"camera '{self.name}' has size, rate_hz or locked; "
                f"valid with a device, not with {self.source}: set these of its driver"
            )

    @property
    def capture(self) -> Capture:
        """What its device is asked for."""
        return Capture(self.size, self.rate_hz, self.locked)

    def model(self, width: int, height: int) -> CameraModel | None:
        """Pinhole model for images of this size in px; None if the camera is not calibrated, or not fixed."""
        if self.position is None or self.quaternion is None or not self.is_fixed:
            return None
        rotation = matrix_from_quaternion(self.quaternion)
        return CameraModel(np.array(self.position), rotation, self.fovy or DEFAULT_FOVY, width, height)

    @property
    def is_fixed(self) -> bool:
        """Whether the pose of the camera is known in the base frame."""
        return self.position is not None and self.frame == "base"

    def check_there(self, folder: Path) -> None:
        """Raise CameraError if it is a video file or a bag that is not there, seen from ``folder``."""
        from bid_ros.cameras.uvc import is_device  # OpenCV takes a while to import

        named = {"uvc": self.address, "bag": self.address.rpartition(":")[0]}.get(self.source, "")
        device = self.source == "uvc" and is_device(named)
        if named and not device and not (folder / named).exists():
            valid = "a device number, a path under /dev or a video file" if self.source == "uvc" else "a bag"
            raise CameraError(f"camera '{folder / named}' does not exist; valid is {valid}")

    def check_not_moved(self, taken: str = "") -> None:
        """Raise CameraError if the camera was moved after its calibration, or after images of the date ``taken``."""
        date = taken or (self.calibration.date if self.calibration else "")
        if date and self.moved and _instant(date) < _instant(self.moved):
            what = f"images of {date} are" if taken else f"calibration of {date} is"
            raise CameraError(
                f"camera '{self.name}': the {what} older than the camera's last move, {self.moved}; "
                f"valid is a newer one: bid calibrate {'hand-eye' if self.frame == 'tool' else 'fixed'}"
            )


def _instant(date: str) -> float:
    return datetime.fromisoformat(date).astimezone().timestamp()


def load_cameras(path: str | Path, names: Sequence[str], twin: bool = False) -> dict[str, CameraConfig]:
    """Read a camera file that must hold exactly the cameras ``names``; with ``twin`` their sections ``twin`` hold.

    Raises:
        CameraError: the file is missing or not YAML, a camera is missing or unknown, or a value is impossible.
    """
    where = f"camera file {path}"
    content = read_yaml(path, "camera file", CameraError) or {}
    if not isinstance(content, dict):
        raise CameraError(f"{where} is {content!r}; valid is a mapping of the task's cameras {', '.join(names)}")
    for name in [*names, *content]:
        if name not in names or name not in content:
            problem = "the task does not observe" if name in content else "that the task observes is missing"
            raise CameraError(f"{where}: camera '{name}' {problem}; the task's cameras are {', '.join(names)}")
    cameras = {name: _camera(f"{where}: {name}", name, content[name], twin) for name in names}
    _check_devices(where, cameras.values())
    return cameras


def _check_devices(where: str, cameras: Iterable[CameraConfig]) -> None:
    """Raise CameraError if two cameras are the same device: both would show what one of them sees."""
    known: dict[tuple[str, str], str] = {}
    for camera in filter(has_sensor, cameras):
        device = CAMERAS.find(camera.source).device(camera.address)
        other = known.setdefault((camera.source, device), camera.name)
        if other != camera.name:
            raise CameraError(
                f"{where}: cameras '{other}' and '{camera.name}' are both {camera.source} {camera.address}; "
                "valid is another address or serial number for each"
            )


def _camera(where: str, name: str, content: Any, twin: bool) -> CameraConfig:
    if isinstance(content, dict):
        rendered = {"source": "twin"}
        content = {**(rendered if twin else {}), "twin": rendered, **content}
        if isinstance(content["twin"], dict):  # what the device at the robot is asked for is not for the twin
            content["twin"] = {**dict.fromkeys(("size", "rate_hz", "locked")), **content["twin"]}
    return parse_with_twin(CameraConfig, content, where, twin, name=name)


def check_depths(features: Iterable[Feature], cameras: Mapping[str, CameraConfig]) -> None:
    """Raise CameraError if distances are to come from a device, all of which deliver colours alone here."""
    for feature in features:
        if feature.depth is not None and cameras[feature.name].source not in BY_NODE:
            raise CameraError(
                f"camera '{feature.name}' of source '{cameras[feature.name].source}' is to measure distances; valid is "
                "source topic, of its ROS driver, or twin"
            )


def has_sensor(config: CameraConfig) -> bool:
    """Whether the images of a camera surely come from a sensor. Those of a topic may be rendered."""
    return config.source not in BY_NODE and CAMERAS.find(config.source).is_sensor(config.address)


def open_camera(config: CameraConfig, folder: Path) -> Camera:
    """Return the device of a camera, not yet open; ``folder`` is that of the camera file.

    Raises:
        CameraError: its images come from no device, the address cannot be one, or its size and rate cannot be chosen.
    """
    if config.source in BY_NODE:
        raise CameraError(f"camera '{config.name}' of source '{config.source}' is no device to open")
    camera = CAMERAS.find(config.source).build(config.address, folder)
    if config.capture != Capture():
        if not isinstance(camera, AdjustableCamera):
            raise CameraError(
                f"camera '{config.name}' of source '{config.source}' has size, rate_hz or locked; valid is none of them"
            )
        camera.ask(config.capture)
    return camera

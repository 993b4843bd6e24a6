"""Images of the board with the poses of the robot they were taken at, in memory and in a folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.calibration.rigid import from_pose
from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replace_text, replacing
from bid_ros.core.rotation import Array, quaternion_from_matrix

FILE: Final = "poses.json"


@dataclass(frozen=True, eq=False)
class Shot:
    """One image of the board.

    Attributes:
        image: ``(height, width, 3)`` uint8, rgb, whole: before the crop.
        tool: ``(4, 4)`` measured pose of the tool, base frame; None: nobody knows it.
        stamp_ns: when it was taken, ns since 1970.
        name: of its file.
    """

    image: NDArray[np.uint8]
    tool: Array | None
    stamp_ns: int
    name: str = ""

    @property
    def date(self) -> str:
        """When it was taken, as text."""
        return datetime.fromtimestamp(self.stamp_ns // 1_000_000_000, UTC).astimezone().isoformat()


class ShotFolder:
    """A folder that images are added to, one after the other. What is there is complete at any time.

    Args:
        folder: to write; it must not hold images yet.
        camera: name of the camera.
        twin: they are rendered by the twin.

    Raises:
        CalibrationError: the folder holds images already.
    """

    def __init__(self, folder: Path, camera: str, twin: bool) -> None:
        if (folder / FILE).exists():
            raise CalibrationError(f"{folder} holds images already; valid is a new folder, or --from {folder}")
        self._folder, self._about = folder, {"camera": camera, "twin": twin}
        self._poses: list[dict[str, Any]] = []

    def add(self, shot: Shot) -> Shot:
        """Write an image and its pose; return it with the name of its file."""
        name = f"{len(self._poses):03}.png"
        with replacing(self._folder / name, ".png") as part:
            cv2.imwrite(str(part), shot.image[:, :, ::-1])
        entry: dict[str, Any] = {"image": name, "stamp_ns": shot.stamp_ns}
        if shot.tool is not None:
            turn = quaternion_from_matrix(shot.tool[:3, :3])
            entry |= {"position": shot.tool[:3, 3].tolist(), "quaternion": turn.tolist()}
        self._poses.append(entry)
        text = json.dumps({**self._about, "poses": self._poses}, indent=1) + "\n"
        replace_text(self._folder / FILE, text)
        return Shot(shot.image, shot.tool, shot.stamp_ns, name)


def read_shots(folder: Path, camera: str) -> tuple[list[Shot], bool]:
    """Return the images in a folder, in the order they were taken, and whether they are the twin's.

    Args:
        folder: as :class:`ShotFolder` wrote it.
        camera: name of the camera that they must be of.

    Raises:
        CalibrationError: the folder, or a file of it, is missing or damaged, or the images are another camera's.
    """
    path = folder / FILE
    try:
        content = json.loads(path.read_text())
        entries, taken_by, twin = content["poses"], content["camera"], bool(content["twin"])
        shots = [_read(folder, entry) for entry in entries]
    except FileNotFoundError as error:
        raise CalibrationError(f"{folder} has no {FILE}; valid is a folder that bid calibrate wrote") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CalibrationError(f"{path} cannot be read ({error}); valid is one that bid calibrate wrote") from error
    if taken_by != camera:
        raise CalibrationError(f"the images in {folder} are of camera '{taken_by}'; valid are those of '{camera}'")
    return shots, twin


def _read(folder: Path, entry: dict[str, Any]) -> Shot:
    picture = cv2.imread(str(folder / entry["image"]), cv2.IMREAD_COLOR)
    if picture is None:
        raise CalibrationError(f"{folder / entry['image']} is missing or no image; valid is the PNG that was taken")
    tool = from_pose(entry["position"], entry["quaternion"]) if "position" in entry else None
    return Shot(np.ascontiguousarray(picture[:, :, ::-1]), tool, int(entry["stamp_ns"]), str(entry["image"]))


def size_of(shots: Sequence[Shot]) -> tuple[int, int]:
    """Return width and height in px of all images. Raises CalibrationError if they differ, or there is none."""
    sizes = {(shot.image.shape[1], shot.image.shape[0]) for shot in shots}
    if len(sizes) != 1:
        shown = " and ".join(f"{width}x{height}" for width, height in sorted(sizes)) or "none"
        raise CalibrationError(f"the images have sizes {shown} px; valid is one size, that of the camera")
    return sizes.pop()

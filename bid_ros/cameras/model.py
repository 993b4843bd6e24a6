"""Pinhole model of a camera: projects points of the base frame into its image."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import CameraError

NEAR: Final = 1e-3  # m; nothing nearer is drawn


def focal_px(fovy: float, height: int) -> float:
    """Return the focal length in px of a camera with a vertical field of view in degrees and ``height`` px."""
    return height / 2 / math.tan(math.radians(fovy) / 2)


@dataclass(frozen=True)
class CameraModel:
    """An ideal camera: square pixels, no distortion, optical axis through the middle of the image.

    Attributes:
        position: (3,) of the optical centre in m, base frame.
        rotation: ``(3, 3)`` camera_to_base. The camera's axes are those of ROS optical frames (REP 103): x to the
            right of the image, y down, z forward.
        fovy: vertical field of view in degrees of the cropped image. The crop must be centred.
        width, height: size of the image in px.

    Raises:
        CameraError: the rotation is not a rotation, or a number is outside its range.
    """

    position: NDArray[np.float64]
    rotation: NDArray[np.float64]
    fovy: float
    width: int
    height: int

    def __post_init__(self) -> None:
        position = np.asarray(self.position, dtype=np.float64)
        rotation = np.asarray(self.rotation, dtype=np.float64)
        if position.shape != (3,) or not np.isfinite(position).all():
            raise CameraError(f"camera position is {position}; valid is three finite numbers in m")
        if rotation.shape != (3, 3) or not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-4):
            raise CameraError(f"camera rotation is {rotation.tolist()}; valid is a (3, 3) rotation matrix")
        if np.linalg.det(rotation) < 0:
            raise CameraError("camera rotation is a reflection; valid is a (3, 3) rotation matrix")
        if not 0 < self.fovy < 180:
            raise CameraError(f"camera fovy is {self.fovy} degrees; valid is above 0 and below 180")
        if self.width < 1 or self.height < 1:
            raise CameraError(f"camera picture is {self.width}x{self.height} px; valid is 1x1 or more")
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "rotation", rotation)

    def project(self, points: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Project points ``(..., 3)`` in m, base frame.

        Returns:
            Pixels ``(..., 2)`` as (x, y) from the upper left corner of the image (the middle of the first pixel is at
            0.5, 0.5), NaN for points that are not in front of the camera; and depths ``(...)`` in m along the optical
            axis.
        """
        local = (np.asarray(points, dtype=np.float64) - self.position) @ self.rotation
        depth = local[..., 2]
        visible = np.where(depth > NEAR, depth, np.nan)
        focal = focal_px(self.fovy, self.height)
        pixels = focal * local[..., :2] / visible[..., None] + np.array([self.width / 2, self.height / 2])
        return pixels, depth

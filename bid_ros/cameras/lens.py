"""The lens of a camera: focal lengths, centre and distortion of the whole image that it delivers."""

import math
from typing import Annotated, Final, Self

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.cameras.image import Crop
from bid_ros.core.errors import CameraError
from bid_ros.core.settings import list_of, settings

Array = NDArray[np.float64]
UNDISTORTED: Final = (0.0, 0.0, 0.0, 0.0, 0.0)


@settings(error=CameraError)
class Lens:
    """A pinhole with distortion, as ``sensor_msgs/CameraInfo`` has it. ``bid calibrate intrinsics`` measures it.

    Attributes:
        size: width and height in px of the whole image, before the crop.
        focal: focal length along x and y, px.
        centre: where the optical axis meets the image, px; the middle of the first pixel is at 0, 0.
        distortion: k1, k2, p1, p2 and k3 of the model ``plumb_bob``.
    """

    size: Annotated[tuple[int, int], list_of(2, "integer")]
    focal: Annotated[tuple[float, float], list_of(2)]
    centre: Annotated[tuple[float, float], list_of(2)]
    distortion: Annotated[tuple[float, float, float, float, float], list_of(5)] = UNDISTORTED

    def __post_init__(self) -> None:
        if min(self.size) < 1 or min(self.focal) <= 0:
            raise CameraError(f"lens has size {self.size} and focal {self.focal}; valid are px above 0")

    @classmethod
    def ideal(cls, fovy: float, size: tuple[int, int], crop: Crop | None = None) -> Self:
        """Return the lens without distortion whose vertical field of view inside ``crop`` is ``fovy`` degrees."""
        left, top, width, height = crop or (0, 0, *size)
        focal = height / 2 / math.tan(math.radians(fovy) / 2)
        return cls(size, (focal, focal), (left + width / 2 - 0.5, top + height / 2 - 0.5))

    def fovy(self, crop: Crop | None = None) -> float:
        """Return the vertical field of view in degrees of the image inside ``crop``."""
        height = crop[3] if crop else self.size[1]
        return math.degrees(2 * math.atan(height / 2 / self.focal[1]))

    @property
    def matrix(self) -> Array:
        """``(3, 3)`` camera matrix in px, for OpenCV."""
        (fx, fy), (cx, cy) = self.focal, self.centre
        return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])

    def straightened(self, pixels: ArrayLike) -> Array:
        """Return where pixels ``(n, 2)`` would be without distortion, px."""
        places = np.asarray(pixels, dtype=np.float64).reshape(-1, 1, 2)
        straight = cv2.undistortPoints(places, self.matrix, np.array(self.distortion), None, self.matrix)
        return np.asarray(straight, dtype=np.float64).reshape(-1, 2)

"""The camera of the studio as one that knows what hides a point."""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.cameras.model import CameraModel
from bid_ros.sim.studio import CAMERA

THICKNESS: Final = 0.01  # m by which a point may lie behind what is seen: lines lie on surfaces
FROM_MUJOCO: Final = np.diag([1.0, -1.0, -1.0])  # MuJoCo's cameras look along -z, y up


class StudioEye:
    """A :class:`bid_ros.views.overlay.Eye` at the studio's camera.

    Args:
        model: MuJoCo's model of the scene.
        width, height: size of the picture in px.

    Attributes:
        depths: ``(height, width)`` m, what the camera sees; None: nothing is hidden.
    """

    def __init__(self, model: Any, width: int, height: int) -> None:
        camera = model.camera(CAMERA)
        turn = np.asarray(model.cam_mat0[camera.id]).reshape(3, 3) @ FROM_MUJOCO
        self._model = CameraModel(np.array(model.cam_pos0[camera.id]), turn, float(camera.fovy[0]), width, height)
        self.depths: NDArray[np.float64] | None = None
        self.width, self.height = width, height

    def project(self, points: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return pixels ``(..., 2)``, NaN where something else is in front, and depths ``(...)`` in m, of points."""
        pixels, depth = self._model.project(points)
        if self.depths is not None:
            inside = np.asarray((pixels >= 0).all(-1) & (pixels < (self.width, self.height)).all(-1))
            column, row = np.where(inside[..., None], pixels, 0.0).astype(int).T
            pixels[inside & (depth > self.depths[row.T, column.T] + THICKNESS)] = np.nan
        return pixels, depth

"""The model of a camera of MuJoCo's, which looks along -z with y up."""

from __future__ import annotations

from typing import Any

import numpy as np

from bid_ros.cameras.model import CameraModel


def mujoco_camera(model: Any, data: Any, index: int) -> CameraModel:
    """Model of a camera for pictures of 96 px."""
    axes = data.cam_xmat[index].reshape(3, 3) @ np.diag([1.0, -1.0, -1.0])
    return CameraModel(data.cam_xpos[index].copy(), axes, float(model.cam_fovy[index]), 96, 96)

"""The state of a twin's scene, as a renderer in another process needs it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SceneState:
    """Everything that a renderer needs, at one instant.

    Attributes:
        stamp_ns: wall time.
        qpos: ``(nq,)``; mocap_pos: ``(bodies, 3)`` m; mocap_quat: ``(bodies, 4)`` wxyz.
    """

    stamp_ns: int
    qpos: NDArray[np.float64]
    mocap_pos: NDArray[np.float64]
    mocap_quat: NDArray[np.float64]

"""Pictures of a bench that MuJoCo simulates, with whichever offscreen OpenGL works."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.sim.offscreen import open_context

MOST_SHAPES: Final = 2000


class Drawing:
    """Draws states of one model. Use it in the thread that made it.

    Args:
        model: MuJoCo's, of whichever version simulates it.
        size: width and height of a picture, px.
        groups: of shapes that are drawn, MuJoCo's numbers; empty: those that MuJoCo draws by itself.

    Attributes:
        size: as given.

    Raises:
        CameraError: no offscreen OpenGL works here.
    """

    def __init__(self, model: Any, size: int, groups: Sequence[int] = ()) -> None:
        import mujoco

        self.size, self._model, self._mujoco = size, model, mujoco
        self._gl = open_context(size, size)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene, self._option = mujoco.MjvScene(model, maxgeom=MOST_SHAPES), mujoco.MjvOption()
        if groups:
            self._option.geomgroup[:] = [number in groups for number in range(len(self._option.geomgroup))]
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = 0  # a film has 1,600 pictures: they would take most of the time

    def picture(self, data: Any, centre: ArrayLike, view: tuple[float, float, float]) -> NDArray[np.uint8]:
        """Return a picture ``(size, size, 3)`` uint8, rgb.

        Args:
            data: state of the simulation.
            centre: ``(3,)`` m, what the camera looks at.
            view: azimuth and elevation in degrees, and distance in m.
        """
        mujoco, camera = self._mujoco, self._mujoco.MjvCamera()
        camera.azimuth, camera.elevation, camera.distance = view
        camera.lookat = np.asarray(centre)
        every = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(self._model, data, self._option, None, camera, every, self._scene)
        self._gl.make_current()
        rect, picture = mujoco.MjrRect(0, 0, self.size, self.size), np.empty((self.size, self.size, 3), np.uint8)
        mujoco.mjr_render(rect, self._scene, self._context)
        mujoco.mjr_readPixels(picture, None, rect, self._context)
        return np.ascontiguousarray(picture[::-1])

"""Offscreen rendering of a twin's scene from a state of the twin, in any process."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import CameraError
from bid_ros.sim.offscreen import open_context

MAX_SIZE: Final = 640  # pixels, the offscreen buffer of the scene

_FLAGS_OFF: Final = ("SHADOW", "REFLECTION", "SKYBOX", "FOG", "HAZE")


class SceneRenderer:
    """Renders the twin's cameras. Use it in the thread that made it: an OpenGL context belongs to one thread.

    Args:
        model: model of the scene.
        width, height: size of the images in pixels, 8 to 640, or to what the model's buffer holds.
        cameras: names of the cameras to render. None: all.
        shaded: with shadows, reflections and sky, for a scene of :mod:`bid_ros.sim.studio`.
        depths: names of the cameras that measure distances.

    Raises:
        CameraError: the size or a camera name is not valid, or no offscreen OpenGL works here (its subclass
            ``RenderingError``).
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int = 96,
        height: int = 96,
        cameras: Sequence[str] | None = None,
        shaded: bool = False,
        depths: Collection[str] = (),
    ) -> None:
        largest = max(MAX_SIZE, int(model.vis.global_.offwidth))
        if not (8 <= width <= largest and 8 <= height <= largest):
            raise CameraError(f"image size is {width} x {height}; valid is 8 to {largest} pixels")
        self._model = model
        valid = [self._model.camera(index).name for index in range(self._model.ncam)]
        wanted = valid if cameras is None else cameras
        unknown = [name for name in wanted if name not in valid]
        if unknown:
            raise CameraError(f"the twin has no camera '{unknown[0]}'; valid are {', '.join(valid)}")
        self._data = mujoco.MjData(self._model)
        if not shaded:
            # One thread per context: at these image sizes more threads are slower.
            os.environ.setdefault("LP_NUM_THREADS", "1")
        self._gl = open_context(width, height)
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(self._model, maxgeom=200)
        for flag in () if shaded else _FLAGS_OFF:
            self._scene.flags[getattr(mujoco.mjtRndFlag, f"mjRND_{flag}")] = 0
        self._option = mujoco.MjvOption()
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._views, self._depths = {name: self._view(name) for name in wanted}, frozenset(depths)

    def render(
        self, qpos: NDArray[np.float64], mocap_pos: NDArray[np.float64], mocap_quat: NDArray[np.float64]
    ) -> Mapping[str, NDArray[Any]]:
        """Return one image per camera of a state of the twin.

        ``(height, width, 3)`` rgb8; of those that measure distances ``(height, width, 1)`` uint16, mm, 0 where nothing
        is.

        Args:
            qpos: ``(nq,)`` generalised positions of the twin's model.
            mocap_pos, mocap_quat: ``(bodies, 3)`` m and ``(bodies, 4)`` wxyz; flat arrays are accepted.

        Raises:
            CameraError: the sizes do not fit the scene.
        """
        self._take(qpos, mocap_pos, mocap_quat)
        return {
            name: self._millimetres(view) if name in self._depths else self._image(view)
            for name, view in self._views.items()
        }

    def picture(self, camera: str, height: int, width: int) -> NDArray[np.uint8]:
        """Return the state that was rendered last, with the sky, as a camera sees it: ``(height, width, 3)`` rgb8.

        Args:
            camera: one of those that are rendered.
            height, width: size in pixels, in the range of those of the images.
        """
        self._gl.make_current()
        sky = mujoco.mjtRndFlag.mjRND_SKYBOX
        before, self._scene.flags[sky] = self._scene.flags[sky], 1
        image = self._image(self._views[camera], rect=mujoco.MjrRect(0, 0, width, height))
        self._scene.flags[sky] = before
        return image

    def render_with_depths(
        self, qpos: NDArray[np.float64], mocap_pos: NDArray[np.float64], mocap_quat: NDArray[np.float64]
    ) -> Mapping[str, tuple[NDArray[np.uint8], NDArray[np.float64]]]:
        """Return image and depths per camera; arguments and errors as :meth:`render`.

        Depths are ``(height, width)`` in m along the optical axis, the far plane where nothing is.
        """
        self._take(qpos, mocap_pos, mocap_quat)
        found = {}
        for name, view in self._views.items():
            buffer = self._buffer()
            found[name] = self._image(view, buffer), self._metres(buffer)
        return found

    def close(self) -> None:
        """Free the OpenGL context."""
        self._gl.make_current()
        self._context.free()
        self._gl.free()

    def _take(self, qpos: NDArray[np.float64], mocap_pos: NDArray[np.float64], mocap_quat: NDArray[np.float64]) -> None:
        state = (("qpos", qpos), ("mocap_pos", mocap_pos), ("mocap_quat", mocap_quat))
        for name, value in state:
            target = getattr(self._data, name)
            if np.size(value) != target.size:
                raise CameraError(f"the scene state's {name} has {np.size(value)} values; valid is {target.size}")
            target[:] = np.reshape(value, target.shape)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._gl.make_current()

    def _view(self, name: str) -> mujoco.MjvCamera:
        view = mujoco.MjvCamera()
        view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        view.fixedcamid = self._model.camera(name).id
        return view

    def _image(
        self,
        view: mujoco.MjvCamera,
        depth: NDArray[np.float32] | None = None,
        rect: mujoco.MjrRect | None = None,
    ) -> NDArray[np.uint8]:
        rect, catch_all = rect or self._rect, mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, self._data, self._option, None, view, catch_all, self._scene)
        mujoco.mjr_render(rect, self._scene, self._context)
        image = np.empty((rect.height, rect.width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(image, depth, rect, self._context)
        return np.ascontiguousarray(image[::-1])  # OpenGL's first row is the lowest

    def _buffer(self) -> NDArray[np.float32]:
        return np.empty((self._rect.height, self._rect.width), dtype=np.float32)

    def _millimetres(self, view: mujoco.MjvCamera) -> NDArray[np.uint16]:
        buffer = self._buffer()
        self._image(view, buffer)
        there = buffer[::-1] < 1.0
        whole = np.where(there, np.round(1e3 * self._metres(buffer)), 0)
        return np.where(whole > np.iinfo(np.uint16).max, 0, whole).astype(np.uint16)[..., None]

    def _metres(self, buffer: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the depths of a depth buffer, whose values go from 0 at the near plane to 1 at the far one."""
        near, far = (getattr(self._model.vis.map, name) * self._model.stat.extent for name in ("znear", "zfar"))
        depths: NDArray[np.float64] = near / (1.0 - buffer[::-1].astype(np.float64) * (1.0 - near / far))
        return depths

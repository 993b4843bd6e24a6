"""A twin's scene with a board in it, and pictures of it as a camera of 1280 x 720 px with noise and blur would take.

The images of the policy stay as they are: these are rendered beside them, on demand.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any, Final

import cv2
import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.calibration.board import QUIET, Board
from bid_ros.calibration.rigid import from_pose
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.robots.registry import twin_maker
from bid_ros.sim.mjcf import NO_BITS, geom, part, text
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.twin import TwinScene
from bid_ros.tasks.registry import kind_of

SIZE: Final = (1280, 720)  # px
NOISE: Final = 2.0  # grey levels, standard deviation
BLUR_PX: Final = 0.7  # of the lens, standard deviation
BOARD: Final = "calibration_board"
ON_TABLE: Final = (
    (0.47, 0.02, 0.012),
    (0.9962, 0.0, 0.0, 0.0872),
)  # m and wxyz of the middle, z up; not quite straight
IN_HAND: Final = ((0.05, 0.0, 0.21), (0.0, 0.7986, 0.0, 0.6018))  # in the hand's frame: before the fingers
_SQUARE_PX: Final = 60
_THICK: Final = 0.002  # m, half


class BoardScene:
    """The scene of a task with a board on the table, or held by the gripper (:class:`bid_ros.sim.twin.TwinScene`).

    Args:
        inner: the scene of the task.
        board: what it looks like.
        in_hand: it is held, for a fixed camera; otherwise it lies on the table, for one at the wrist.
    """

    def __init__(self, inner: TwinScene, board: Board, in_hand: bool) -> None:
        self._inner, self._board, self._in_hand = inner, board, in_hand
        self.bodies = inner.bodies

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add what the task adds, and the board."""
        self._inner.furnish(scene, hand)
        place, turn = IN_HAND if self._in_hand else ON_TABLE
        asset = scene.find("asset")
        asset = ET.SubElement(scene, "asset") if asset is None else asset
        height, width = _print_of(self._board).shape
        paper = {"type": "2d", "builtin": "flat", "rgb1": "1 1 1", "width": str(width), "height": str(height)}
        ET.SubElement(asset, "texture", paper, name=BOARD)
        ET.SubElement(asset, "material", name=BOARD, texture=BOARD, specular="0", shininess="0", emission="0.25")
        body = ET.SubElement(
            hand if self._in_hand else part(scene, "worldbody"), "body", name=BOARD, pos=text(place), quat=text(turn)
        )
        size = [side / 2 + QUIET * self._board.square for side in self._board.size]
        # Without mass, so that the twin's arm would carry nothing more.
        geom(body, "box", size=text([*size, _THICK]), pos=f"0 0 {-_THICK}", material=BOARD, mass="0", **NO_BITS)

    def layout(self, seed: int, speed: float) -> Any:
        """Return how an episode begins, as the task says it."""
        return self._inner.layout(seed, speed)

    def world(self, model: Any, data: Any) -> Any:
        """Return the world, as the task says it."""
        return self._inner.world(model, data)


def _print_of(board: Board) -> NDArray[np.uint8]:
    """Return the board with white around it, grey."""
    return np.pad(board.drawing(_SQUARE_PX), round(QUIET * _SQUARE_PX), constant_values=255)


def board_model(task: Task, board: Board, in_hand: bool) -> mujoco.MjModel:
    """Return the compiled scene of a task's twin with the board in it; ``qpos`` and mocap layout are the twin's.

    Args:
        task: names robot and kind of task.
        board: what it looks like.
        in_hand: as :class:`BoardScene`.

    Raises:
        ArmError: the robot has no twin.
    """
    model = twin_maker(task.robot).scene_model(BoardScene(kind_of(task).scene(task), board, in_hand))
    texture = model.texture(BOARD).id
    picture = np.repeat(_print_of(board)[:, :, None], int(model.tex_nchannel[texture]), axis=2)
    first = int(model.tex_adr[texture])
    model.tex_data[first : first + picture.size] = picture.ravel()
    for name in kind_of(task).scene(task).bodies:  # whoever calibrates takes cup and object off the table
        model.geom_rgba[model.geom_bodyid == model.body(name).id, 3] = 0.0
    model.vis.global_.offwidth, model.vis.global_.offheight = SIZE
    model.vis.quality.offsamples = 4  # as a lens would, or the edges are steps
    return model


class TwinCamera:
    """Takes pictures of a twin's scene with a board in it. Use it in one thread.

    Args:
        task: of the twin.
        board: what it looks like.
        camera: name of the camera.
        in_hand: the board is held by the gripper, for a fixed camera.
        seed: of the noise.

    Raises:
        ArmError: the robot has no twin.
        CameraError: the twin has no such camera, or no offscreen rendering works here.
    """

    def __init__(self, task: Task, board: Board, camera: str, in_hand: bool, seed: int = 0) -> None:
        self.model = board_model(task, board, in_hand)
        self._board, self._camera, self._random = board, camera, np.random.default_rng(seed)
        self._renderer = SceneRenderer(self.model, *SIZE, [camera])
        self._data = mujoco.MjData(self.model)

    def take(self, qpos: Array, mocap_pos: Array, mocap_quat: Array) -> NDArray[np.uint8]:
        """Return an rgb image ``(720, 1280, 3)`` of a state of the twin, with blur and noise."""
        sharp = self._renderer.render(qpos, mocap_pos, mocap_quat)[self._camera]
        soft = cv2.GaussianBlur(sharp, (0, 0), BLUR_PX).astype(np.float64)
        noisy = np.clip(soft + self._random.normal(0.0, NOISE, soft.shape), 0, 255)
        return np.asarray(noisy.round(), dtype=np.uint8)

    @property
    def fovy(self) -> float:
        """Vertical field of view in degrees."""
        return float(self.model.camera(self._camera).fovy[0])

    def truth(self, qpos: Array) -> Mapping[str, Array]:
        """Return the true poses ``(4, 4)`` in the base frame of ``camera`` (optical frame) and ``board``, for tests."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_camlight(self.model, self._data)
        number = self.model.camera(self._camera).id
        camera = np.eye(4)
        camera[:3, :3] = self._data.cam_xmat[number].reshape(3, 3) @ np.diag([1.0, -1.0, -1.0])
        camera[:3, 3] = self._data.cam_xpos[number]
        body = self._data.body(BOARD)
        middle = from_pose(body.xpos, body.xquat[[1, 2, 3, 0]])
        width, height = self._board.size
        corner = np.eye(4)
        corner[:3, :3], corner[:3, 3] = np.diag([1.0, -1.0, -1.0]), (-width / 2, height / 2, 0.0)
        return {"camera": camera, "board": middle @ corner}

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

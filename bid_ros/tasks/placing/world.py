"""What happens around the robot in an episode of the twin: the object is handed over, then the cup is moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.model import TOOL_FROM_HAND
from bid_ros.tasks.placing.cup_path import EpisodeScene
from bid_ros.tasks.placing.geometry import GRASP_BELOW_TOP, OBJECT_LENGTH
from bid_ros.tasks.placing.scene import SceneAddresses

MIN_RESET_WIDTH: Final = 0.06  # m, opening that takes the object between the fingers
MAX_GRIP_WIDTH: Final = 0.06
SETTLED_SPEED: Final = 0.005  # m/s of the opening width, below which the fingers count as standing
SETTLED_S: Final = 0.08  # less than the 0.1 s after which the gripper reports a grasp as done

_OBJECT_FROM_HAND: Final = TOOL_FROM_HAND + OBJECT_LENGTH / 2 - GRASP_BELOW_TOP


@dataclass(frozen=True)
class GroundTruth:
    """Where everything is. For scoring and scripted demonstrations, never for a policy.

    Attributes:
        stamp_ns: wall time.
        cup_position: ``(3,)`` centre of the cup's foot; object_position: ``(3,)`` centre of the object;
            tool_position: ``(3,)``; all m, base frame. Quaternions ``(4,)`` xyzw.
        gripper_width: m.
        handed_over: the fingers hold the object by themselves since the last reset.
    """

    stamp_ns: int
    cup_position: NDArray[np.float64]
    cup_quaternion: NDArray[np.float64]
    object_position: NDArray[np.float64]
    object_quaternion: NDArray[np.float64]
    tool_position: NDArray[np.float64]
    tool_quaternion: NDArray[np.float64]
    gripper_width: float
    handed_over: bool

    @property
    def bodies(self) -> Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Pose (position m, quaternion xyzw) of what lies in the scene, by name."""
        cup = (self.cup_position, self.cup_quaternion)
        return {"cup": cup, "object": (self.object_position, self.object_quaternion)}


class PlacingWorld:
    """Acts on a MuJoCo model of the placing scene before every step; all methods belong to the stepping thread.

    Args:
        model, data: of a twin with this scene (:func:`bid_ros.robots.franka.model.build_simulator`).
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model = model
        self._data = data
        self._at = SceneAddresses.of(model)
        self._scene: EpisodeScene | None = None
        self._carried = False
        self._handed_over = False
        self._moving = False
        self._still_s = 0.0
        self._path_s = 0.0

    @property
    def gripper_width(self) -> float:
        """Opening width, m."""
        left, right = self._at.fingers_qpos
        return float(self._data.qpos[left] + self._data.qpos[right])

    def lay_out(self, scene: EpisodeScene) -> None:
        """Put the object between the open fingers, where it stays until they hold it, and the cup at its start.

        Raises:
            ArmError: if the gripper is not open wide enough; nothing changes then.
        """
        if self.gripper_width <= MIN_RESET_WIDTH:
            raise ArmError(
                f"the gripper is open {self.gripper_width * 1e3:.0f} mm; the next episode of the twin needs more than "
                f"{MIN_RESET_WIDTH * 1e3:.0f} mm to take the object: open it first"
            )
        self._scene = scene
        self._carried, self._handed_over, self._moving = True, False, False
        self._still_s = self._path_s = 0.0
        self._place_cup()

    def start_path(self) -> None:
        """Let the cup's path begin, now or as soon as the fingers hold the object."""
        self._moving = True

    def before_step(self) -> None:
        """Hold the object until it is handed over; move the cup along its path."""
        if self._carried:
            self._hold_object()
            self._check_grip()
        elif self._moving and self._scene is not None:  # an episode may begin before the first reset
            self._path_s += self._model.opt.timestep
            self._place_cup()

    def ground_truth(self, stamp_ns: int) -> GroundTruth:
        """Read the present state, which belongs to wall time ``stamp_ns``."""
        data, at = self._data, self._at
        start = at.object_qpos
        return GroundTruth(
            stamp_ns=stamp_ns,
            cup_position=data.mocap_pos[at.cup].copy(),
            cup_quaternion=_xyzw(data.mocap_quat[at.cup]),
            object_position=data.qpos[start : start + 3].copy(),
            object_quaternion=_xyzw(data.qpos[start + 3 : start + 7]),
            tool_position=_along_hand(data, at, TOOL_FROM_HAND),
            tool_quaternion=_xyzw(data.xquat[at.hand]),
            gripper_width=self.gripper_width,
            handed_over=self._handed_over,
        )

    def _hold_object(self) -> None:
        qpos, qvel = self._at.object_qpos, self._at.object_qvel
        self._data.qpos[qpos : qpos + 7] = object_in_hand(self._data, self._at)
        self._data.qvel[qvel : qvel + 6] = 0.0

    def _check_grip(self) -> None:
        left, right = self._at.fingers_qvel
        still = abs(self._data.qvel[left] + self._data.qvel[right]) < SETTLED_SPEED
        gripped = still and self.gripper_width < MAX_GRIP_WIDTH
        self._still_s = self._still_s + self._model.opt.timestep if gripped else 0.0
        if self._still_s >= SETTLED_S:
            self._carried, self._handed_over = False, True

    def _place_cup(self) -> None:
        assert self._scene is not None
        self._data.mocap_pos[self._at.cup, :2] = self._scene.path.position(self._path_s)


def object_in_hand(data: mujoco.MjData, at: SceneAddresses) -> NDArray[np.float64]:
    """Return the pose ``(7,)`` (m, quaternion wxyz) of an object that hangs upright between the fingers."""
    return np.concatenate([_along_hand(data, at, _OBJECT_FROM_HAND), _turned_over(data.xquat[at.hand])])


def _along_hand(data: mujoco.MjData, at: SceneAddresses, distance: float) -> NDArray[np.float64]:
    point: NDArray[np.float64] = data.xpos[at.hand] + distance * data.xmat[at.hand][2::3]
    return point


def _xyzw(wxyz: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([wxyz[1], wxyz[2], wxyz[3], wxyz[0]])


def _turned_over(wxyz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half a turn about the own x axis: the object stands upright in a hand that points down."""
    w, x, y, z = wxyz
    return np.array([-x, w, z, -y])

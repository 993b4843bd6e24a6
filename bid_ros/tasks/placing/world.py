"""What happens around the robot in an episode of the twin: the object is handed over, then the cup is moved."""

from typing import Any, Final

import numpy as np

from bid_ros.core.task import Task
from bid_ros.robots.franka.model import ROBOT, TOOL_FROM_HAND
from bid_ros.sim.twin import Array
from bid_ros.tasks.placing.cup_path import EpisodeScene, episode_scene
from bid_ros.tasks.placing.geometry import GRASP_BELOW_TOP, OBJECT_LENGTH
from bid_ros.tasks.placing.scene import CAMERAS, furnish
from bid_ros.tasks.world import HandWorld, TaskScene, TaskTruth, along, xyzw

HAND: Final = f"{ROBOT}hand"
FINGERS: Final = (f"{ROBOT}finger_joint1", f"{ROBOT}finger_joint2")
MIN_RESET_WIDTH: Final = 0.06  # m, opening that takes the object between the fingers
MAX_GRIP_WIDTH: Final = 0.06
SETTLED_SPEED: Final = 0.005  # m/s of the opening width, below which the fingers count as standing
SETTLED_S: Final = 0.08  # less than the 0.1 s after which the gripper reports a grasp as done

_OBJECT_FROM_HAND: Final = TOOL_FROM_HAND + OBJECT_LENGTH / 2 - GRASP_BELOW_TOP


class PlacingWorld(HandWorld):
    """Holds the object until the fingers do, then moves the cup.

    Args:
        model, data: of a twin with this scene (:func:`bid_ros.robots.franka.model.build_simulator`).
    """

    def __init__(self, model: Any, data: Any) -> None:
        super().__init__(model, data, HAND, TOOL_FROM_HAND, FINGERS)
        self._object, self._cup = data.joint("object_joint"), self.mocap("cup")
        self._scene: EpisodeScene | None = None
        self._carried = False
        self._still_s = 0.0
        self._path_s = 0.0

    def lay_out(self, scene: EpisodeScene) -> None:
        """Put the object between the open fingers, where it stays until they hold it, and the cup at its start.

        Raises:
            ArmError: if the gripper is not open wide enough; nothing changes then.
        """
        self.check_open(MIN_RESET_WIDTH, " to take the object")
        self._scene = scene
        self._carried, self._held, self._moving = True, False, False
        self._still_s = self._path_s = 0.0
        self._place_cup()

    def before_step(self) -> None:
        """Hold the object until it is handed over; move the cup along its path."""
        if self._carried:
            self._object.qpos[:] = object_in_hand(self._hand)
            self._object.qvel[:] = 0.0
            self._check_grip()
        elif self._moving and self._scene is not None:  # an episode may begin before the first reset
            self._path_s += self._model.opt.timestep
            self._place_cup()

    def ground_truth(self, stamp_ns: int) -> TaskTruth:
        """Read the present state, which belongs to wall time ``stamp_ns``.

        The cup's position is the centre of its foot, the object's its own centre.
        """
        data, pose = self._data, self._object.qpos.copy()
        cup = (data.mocap_pos[self._cup].copy(), xyzw(data.mocap_quat[self._cup]))
        return self._truth(stamp_ns, {"cup": cup, "object": (pose[:3], xyzw(pose[3:]))})

    def _check_grip(self) -> None:
        left, right = self._fingers
        still = abs(left.qvel[0] + right.qvel[0]) < SETTLED_SPEED
        gripped = still and self.gripper_width < MAX_GRIP_WIDTH
        self._still_s = self._still_s + self._model.opt.timestep if gripped else 0.0
        if self._still_s >= SETTLED_S:
            self._carried, self._held = False, True

    def _place_cup(self) -> None:
        assert self._scene is not None
        self._data.mocap_pos[self._cup, :2] = self._scene.path.position(self._path_s)


def object_in_hand(hand: Any) -> Array:
    """Return the pose ``(7,)`` (m, quaternion wxyz) of an object that hangs upright between the fingers.

    The object is half a turn about its own x axis from the hand, which points down.
    """
    w, x, y, z = hand.xquat
    return np.concatenate([along(hand, _OBJECT_FROM_HAND), [-x, w, z, -y]])


SCENE: Final = TaskScene(("cup", "object"), furnish, episode_scene, PlacingWorld)


def scene_of(task: Task) -> TaskScene:
    """Return the scene, its cameras under the names that a task has for them."""
    return SCENE.named(CAMERAS, [camera.name for camera in task.cameras])

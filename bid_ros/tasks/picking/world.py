"""The moving scene of picking: a string pulls the cup until the fingers hold it."""

from typing import Any, Final

import mujoco
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.task import Task
from bid_ros.robots.robotiq.model import FINGERS, PADS, TOOL_FROM_FLANGE
from bid_ros.tasks.picking.geometry import CUP_HEIGHT, FINGERTIP_BELOW_TOOL
from bid_ros.tasks.picking.scene import CAMERAS, furnish
from bid_ros.tasks.picking.string_path import PickingLayout, picking_layout
from bid_ros.tasks.picking.string_pull import StringPull
from bid_ros.tasks.world import HandWorld, TaskScene, TaskTruth, xyzw

MIN_RESET_WIDTH: Final = 0.075  # m, opening that lets go of a cup
MIN_RESET_HEIGHT: Final = CUP_HEIGHT + FINGERTIP_BELOW_TOOL + 0.01  # m, of a tool over any place of a cup
LEVEL: Final = np.array([0.0, 0.0, 0.0, 1.0])  # quaternion xyzw of a saucer on the table
GRASP_FORCE: Final = 5.0  # N on each side of the cup, above which the fingers count as holding it
GRASP_S: Final = 0.04  # for this long without a break: a finger that bumps into the cup is not a grasp


class PickingWorld(HandWorld):
    """Pulls the cup by its string until the fingers hold it.

    Args:
        model, data: of a scene with what :func:`bid_ros.tasks.picking.scene.furnish` adds.
    """

    def __init__(self, model: Any, data: Any) -> None:
        fingers = (f"{FINGERS[0]}_joint", f"{FINGERS[1]}_joint")
        super().__init__(model, data, "gripper", TOOL_FROM_FLANGE, fingers)
        self._cup, self._joint, self._saucer = data.body("cup"), data.joint("cup_joint"), self.mocap("saucer")
        self._solid, self._pads = model.geom("cup").id, [model.geom(pad).id for pad in PADS]
        self._string: StringPull | None = None
        self._pressed_s = 0.0
        self._force = np.zeros(6)

    def lay_out(self, layout: PickingLayout) -> None:
        """Put the cup, upright and on its string, and the saucer where the layout has them.

        Raises:
            ArmError: the gripper is not open, or is too low over the table. Nothing changes then.
        """
        self.check_open(MIN_RESET_WIDTH, ", so that no cup is held")
        if self.tool_position[2] < MIN_RESET_HEIGHT:
            raise ArmError(
                f"the tool is {self.tool_position[2] * 1e3:.0f} mm over the table; the next episode of the twin needs "
                f"{MIN_RESET_HEIGHT * 1e3:.0f} mm or more, where no cup can be: raise it first"
            )
        self._joint.qpos[:] = [*layout.path.start, 0.0, 1.0, 0.0, 0.0, 0.0]
        self._joint.qvel[:] = 0.0
        self._cup.xfrc_applied[:] = 0.0
        self._data.mocap_pos[self._saucer, :2] = layout.saucer
        self._string = StringPull(layout.path)
        self._moving = self._held = False
        self._pressed_s = 0.0

    def before_step(self) -> None:
        """Pull the cup until the fingers hold it."""
        if self._string is None or self._held:
            return
        pressed = self._pressed_from_both_sides()
        self._pressed_s = self._pressed_s + self._model.opt.timestep if pressed else 0.0
        if self._pressed_s >= GRASP_S:
            self._held = True
            self._string.let_go()
            self._cup.xfrc_applied[:] = 0.0
        elif self._moving:
            self._pull(self._string)

    def ground_truth(self, stamp_ns: int) -> TaskTruth:
        """Read the present state, which belongs to wall time ``stamp_ns``.

        The cup's position is the middle of its foot, the saucer's the middle of its underside.
        """
        pose, saucer = self._joint.qpos.copy(), self._data.mocap_pos[self._saucer].copy()
        bodies = {"cup": (pose[:3], xyzw(pose[3:])), "saucer": (saucer, LEVEL)}
        return self._truth(stamp_ns, bodies, self._string.tension if self._string is not None else 0.0)

    def _pull(self, string: StringPull) -> None:
        knot, force = string.step(self._joint.qpos[:3], self._joint.qvel[:3], self._model.opt.timestep)
        # The force acts at the knot; MuJoCo wants force and torque at the centre of mass. Each step of the physics
        # comes here, and numpy's cross product of two vectors would take a tenth of its time.
        (x, y, z), (fx, fy, fz) = knot - self._cup.xipos, force
        self._cup.xfrc_applied[:] = [fx, fy, fz, y * fz - z * fy, z * fx - x * fz, x * fy - y * fx]

    def _pressed_from_both_sides(self) -> bool:
        """Whether each of the pads presses on the cup."""
        contact, cup = self._data.contact, self._solid
        pressing = dict.fromkeys(self._pads, 0.0)
        for index, (first, second) in enumerate(contact.geom.tolist()):
            other = second if first == cup else first
            if cup in (first, second) and other in pressing:
                mujoco.mj_contactForce(self._model, self._data, index, self._force)
                pressing[other] += float(self._force[0])
        return all(force > GRASP_FORCE for force in pressing.values())


SCENE: Final = TaskScene(("cup", "saucer"), furnish, picking_layout, PickingWorld)


def scene_of(task: Task) -> TaskScene:
    """Return the scene, its cameras under the names that a task has for them."""
    return SCENE.named(CAMERAS, [camera.name for camera in task.cameras])

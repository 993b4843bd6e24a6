"""The moving scene of picking: a string pulls the cup until the fingers hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ArmError
from bid_ros.robots.robotiq.model import TOOL_FROM_FLANGE
from bid_ros.tasks.picking.geometry import CUP_HEIGHT, FINGERTIP_BELOW_TOOL
from bid_ros.tasks.picking.scene import PickingAddresses
from bid_ros.tasks.picking.string_path import PickingLayout
from bid_ros.tasks.picking.string_pull import StringPull

Array = NDArray[np.float64]

MIN_RESET_WIDTH: Final = 0.075  # m, opening that lets go of a cup
MIN_RESET_HEIGHT: Final = CUP_HEIGHT + FINGERTIP_BELOW_TOOL + 0.01  # m, of a tool over any place of a cup
LEVEL: Final = np.array([0.0, 0.0, 0.0, 1.0])  # quaternion xyzw of a saucer on the table
GRASP_FORCE: Final = 5.0  # N on each side of the cup, above which the fingers count as holding it
GRASP_S: Final = 0.04  # for this long without a break: a finger that bumps into the cup is not a grasp


@dataclass(frozen=True)
class PickingTruth:
    """Poses of everything. For scoring and scripted demonstrations, never for a policy.

    Attributes:
        stamp_ns: wall time.
        cup_position: ``(3,)`` middle of the cup's foot; saucer_position: ``(3,)`` middle of the saucer's underside;
            tool_position: ``(3,)``; all m, base frame. Quaternions ``(4,)`` xyzw.
        gripper_width: m.
        grasped: the fingers have held the cup since the last reset, so the string is released.
        tension: tension of the string, N.
    """

    stamp_ns: int
    cup_position: Array
    cup_quaternion: Array
    saucer_position: Array
    tool_position: Array
    tool_quaternion: Array
    gripper_width: float
    grasped: bool
    tension: float

    @property
    def bodies(self) -> Mapping[str, tuple[Array, Array]]:
        """Pose (position m, quaternion xyzw) of what lies in the scene, by name."""
        return {"cup": (self.cup_position, self.cup_quaternion), "saucer": (self.saucer_position, LEVEL)}


class PickingWorld:
    """Acts on a MuJoCo model of the picking scene before every step; all methods belong to the stepping thread.

    Args:
        model, data: of a scene that :func:`bid_ros.tasks.picking.scene.picking_model` made.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model = model
        self._data = data
        self._at = PickingAddresses.of(model)
        self._string: StringPull | None = None
        self._moving = False
        self._grasped = False
        self._pressed_s = 0.0
        self._force = np.zeros(6)

    @property
    def gripper_width(self) -> float:
        """Opening width, m."""
        left, right = self._at.fingers_qpos
        return float(self._data.qpos[left] + self._data.qpos[right])

    @property
    def tool_position(self) -> Array:
        """Position of the tool, ``(3,)`` m, base frame."""
        gripper = self._at.gripper
        point: Array = self._data.xpos[gripper] + TOOL_FROM_FLANGE * self._data.xmat[gripper][2::3]
        return point

    def lay_out(self, layout: PickingLayout) -> None:
        """Put the cup, upright and on its string, and the saucer where the layout has them.

        Raises:
            ArmError: the gripper is not open, or is too low over the table. Nothing changes then.
        """
        if self.gripper_width <= MIN_RESET_WIDTH:
            raise ArmError(
                f"the gripper is open {self.gripper_width * 1e3:.0f} mm; the next episode of the twin needs more than "
                f"{MIN_RESET_WIDTH * 1e3:.0f} mm, so that no cup is held: open it first"
            )
        if self.tool_position[2] < MIN_RESET_HEIGHT:
            raise ArmError(
                f"the tool is {self.tool_position[2] * 1e3:.0f} mm over the table; the next episode of the twin needs "
                f"{MIN_RESET_HEIGHT * 1e3:.0f} mm or more, where no cup can be: raise it first"
            )
        data, at = self._data, self._at
        data.qpos[at.cup_qpos : at.cup_qpos + 7] = [*layout.path.start, 0.0, 1.0, 0.0, 0.0, 0.0]
        data.qvel[at.cup_qvel : at.cup_qvel + 6] = 0.0
        data.xfrc_applied[at.cup] = 0.0
        data.mocap_pos[at.saucer, :2] = layout.saucer
        self._string = StringPull(layout.path)
        self._moving = self._grasped = False
        self._pressed_s = 0.0

    def start_path(self) -> None:
        """Let the string begin to pull."""
        self._moving = True

    def before_step(self) -> None:
        """Pull the cup until the fingers hold it."""
        if self._string is None or self._grasped:
            return
        pressed = self._pressed_from_both_sides()
        self._pressed_s = self._pressed_s + self._model.opt.timestep if pressed else 0.0
        if self._pressed_s >= GRASP_S:
            self._grasped = True
            self._string.let_go()
            self._data.xfrc_applied[self._at.cup] = 0.0
        elif self._moving:
            self._pull(self._string)

    def ground_truth(self, stamp_ns: int) -> PickingTruth:
        """Read the present state, which belongs to wall time ``stamp_ns``."""
        data, at = self._data, self._at
        start = at.cup_qpos
        return PickingTruth(
            stamp_ns=stamp_ns,
            cup_position=data.qpos[start : start + 3].copy(),
            cup_quaternion=_xyzw(data.qpos[start + 3 : start + 7]),
            saucer_position=data.mocap_pos[at.saucer].copy(),
            tool_position=self.tool_position,
            tool_quaternion=_xyzw(data.xquat[at.gripper]),
            gripper_width=self.gripper_width,
            grasped=self._grasped,
            tension=self._string.tension if self._string is not None else 0.0,
        )

    def _pull(self, string: StringPull) -> None:
        data, at = self._data, self._at
        position = data.qpos[at.cup_qpos : at.cup_qpos + 3]
        velocity = data.qvel[at.cup_qvel : at.cup_qvel + 3]
        knot, force = string.step(position, velocity, self._model.opt.timestep)
        # The force acts at the knot; MuJoCo wants force and torque at the centre of mass.
        data.xfrc_applied[at.cup, :3] = force
        data.xfrc_applied[at.cup, 3:] = np.cross(knot - data.xipos[at.cup], force)

    def _pressed_from_both_sides(self) -> bool:
        """Whether each of the pads presses on the cup."""
        contact, cup = self._data.contact, self._at.cup_geom
        pressing = dict.fromkeys(self._at.pads, 0.0)
        for index, (first, second) in enumerate(contact.geom.tolist()):
            other = second if first == cup else first
            if cup in (first, second) and other in pressing:
                mujoco.mj_contactForce(self._model, self._data, index, self._force)
                pressing[other] += float(self._force[0])
        return all(force > GRASP_FORCE for force in pressing.values())


def _xyzw(wxyz: Array) -> Array:
    return np.array([wxyz[1], wxyz[2], wxyz[3], wxyz[0]])

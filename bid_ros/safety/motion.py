"""The envelope's arithmetic over many motions at once: the envelope refuses a chunk by it, the screen drops samples."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.rotation import Array, matrix_from_6d, vector_from_matrix
from bid_ros.core.task import Task
from bid_ros.safety.bound import Bound, all_kept, at_most
from bid_ros.safety.geometry import GeometryEnvelope
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.verdict import Verdict, refused

GRIPPER_S: Final = 0.1  # over which the speed of the gripper counts: most are commanded in steps


class MotionEnvelope:
    """Checks how joints and tool move: workspace, speed, acceleration and jerk, and in this order.

    Of a task that commands joints, their position, speed and acceleration come first. Turn rate, turn acceleration and
    tilt of the tool come last: its pose is what forward kinematics say. Derivatives are finite differences at the given
    ``dt``. A motion of one row has none. Rotation and gripper of a task that commands them have bounds of their own.

    Args:
        task: its limits, and the columns of its position or joints. Without either every motion keeps the limits.
        arm: of a task that commands joints; None: its motions keep the limits too.

    Attributes:
        joint_columns: of an action; None: the task commands none.
        joints: their envelope; None: nothing is known of them.
        geometry: keeps the tool's parts out of places.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        limits = self._limits = task.limits
        self._low, self._high = np.array(limits.workspace_min), np.array(limits.workspace_max)
        self._position, self.joint_columns = task.columns("position"), task.columns("joints")
        self._six, self._width = task.columns("rotation_6d"), task.columns("gripper")
        self.geometry = GeometryEnvelope(task)
        self._arm = None if self.joint_columns is None else arm
        self.joints = None if self._arm is None else JointEnvelope(self._arm.limits, limits)

    def tool(self, rows: Array) -> tuple[Array | None, Array | None]:
        """Return the tool's positions ``(..., 3)`` m, and of a task that commands joints its rotations ``(..., 3, 3)``.

        Args:
            rows: actions ``(..., D)``.
        """
        if self._arm is not None:
            return self._arm.forward(rows[..., self.joint_columns])
        return (None if self._position is None else rows[..., self._position]), None

    def pose(self, rows: Array) -> tuple[Array | None, Array | None]:
        """Return the same, with the rotations that a task commands; these are orthonormal, as they are published."""
        position, matrices = self.tool(rows)
        return position, matrices if self._six is None else matrix_from_6d(rows[..., self._six])

    def bounds(self, rows: Array, position: Array | None, dt_s: float, first: int = 0) -> Iterator[Bound]:
        """Yield the bounds of the joints and of the tool's position, in order.

        Args:
            rows: ``(N, n, D)``, the actions of each motion that can still be executed.
            position: of the tool there.
            dt_s: s between two rows.
            first: number of the first of these rows in its chunk, for a sentence.
        """
        if self.joints is not None:
            yield from self.joints.bounds(rows[..., self.joint_columns], dt_s, first)
        if position is not None:
            yield from self._moving(position, dt_s, first)

    def keeps(self, rows: Array, dt_s: float) -> NDArray[np.bool_]:
        """Return which of the motions ``(N, n, D)`` keep every bound, ``(N,)``."""
        position, matrices = self.pose(rows)
        kept = all_kept(len(rows), self.bounds(rows, position, dt_s))
        if matrices is not None:
            kept &= all_kept(len(rows), self.turning(matrices, dt_s))
        if position is not None:
            kept &= all_kept(len(rows), self.geometry.bounds(position, matrices, rows))
        return kept & all_kept(len(rows), self.gripping(rows, dt_s))

    def gripping(self, rows: Array, dt_s: float, first: int = 0) -> Iterator[Bound]:
        """Yield the bound of the gripper's speed in motions ``(N, n, D)``; the others are as in :meth:`bounds`."""
        if self._width is None:
            return
        width, steps = rows[..., self._width][..., 0], max(1, round(GRIPPER_S / dt_s))
        rates = np.abs(width[:, steps:] - width[:, :-steps]) / (steps * dt_s)
        yield at_most("gripper_rate", "gripper speed", rates, self._limits.max_gripper_rate, "m/s", first)

    def _moving(self, position: Array, dt_s: float, first: int) -> Iterator[Bound]:
        outside = np.maximum(self._low - position, position - self._high)
        inside = (outside <= 0).all(axis=(1, 2))
        yield Bound(inside, lambda number: self._outside(position[number], outside[number], first))
        difference, limits = position, self._limits
        for rule, limit, unit in (
            ("speed", limits.max_speed, "m/s"),
            ("acceleration", limits.max_acceleration, "m/s^2"),
            ("jerk", limits.max_jerk, "m/s^3"),
        ):
            difference = (difference[:, 1:] - difference[:, :-1]) / dt_s
            yield at_most(rule, rule, _lengths(difference), limit, unit, first)

    def turning(self, matrices: Array, dt_s: float, first: int = 0) -> Iterator[Bound]:
        """Yield the bounds of rotations ``(N, n, 3, 3)``, tool to base, ``dt_s`` s apart: turn rate to tilt.

        ``first`` is as in :meth:`bounds`.
        """
        limits = self._limits
        rates = vector_from_matrix(matrices[:, 1:] @ np.swapaxes(matrices[:, :-1], -1, -2)) / dt_s
        yield at_most("turn_rate", "turn rate", _lengths(rates), limits.max_turn_rate, "rad/s", first)
        change, most = _lengths((rates[:, 1:] - rates[:, :-1]) / dt_s), limits.max_turn_acceleration
        yield at_most("turn_acceleration", "turn acceleration", change, most, "rad/s^2", first)
        tilt = np.arccos(np.clip(-matrices[..., 2, 2], -1.0, 1.0))
        yield at_most("tilt", "tilt from straight down", tilt, limits.max_tilt, "rad", first)

    def _outside(self, position: Array, outside: Array, first: int) -> Verdict:
        """Return the refusal of positions ``(n, 3)``, by how far each is outside the workspace."""
        row, axis = divmod(int(outside.argmax()), 3)
        value, low, high = float(position[row, axis]), self._low[axis], self._high[axis]
        what = f"{'xyz'[axis]} is {value:.3f} m in action {first + row}"
        reason = f"{what}; the workspace is {low:.3f} to {high:.3f} m"
        return refused("workspace", reason, value, low if value < low else high, first + row)


def _lengths(vectors: Array) -> Array:
    """Lengths ``(N, n)`` of vectors (N, n, 3)."""
    return np.asarray(np.sqrt(np.einsum("nij,nij->ni", vectors, vectors)))

"""Chunks of the tool's pose made into chunks of joints, for senders that plan where the tool goes.

Homing, scripted demonstrations, a person at a device, and policies that predict poses plan for the tool. Where a task
commands joints, inverse kinematics at their edge makes their chunks into the task's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.trajectory import PEAK_SPEED, PlannedChunk, minimum_jerk
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.feature import Feature, FeatureKind
from bid_ros.core.rotation import Array, matrix_from_6d
from bid_ros.core.task import Task

POSTURE_SPEED: Final = 0.3  # rad/s, peak, at which a redundant joint goes from its measured place to that at rest
ROUGHLY_RAD: Final = 2e-3  # how far redundant joints of samples may be from where they settle


def tool_task(task: Task) -> Task:
    """Return a task that commands the tool's pose where this one commands joints; a task without joints itself."""
    if task.columns("joints") is None:
        return task
    pose = (
        Feature("tool_position", "position", frame=task.base_frame),
        Feature("tool_rotation", "rotation_6d", frame=task.base_frame),
    )
    action: list[Feature] = []
    for item in task.action:
        action += pose if item.kind == "joints" else (item,)
    return replace(task, action=tuple(action), data=None)


class JointChunks:
    """Makes chunks of :func:`tool_task` into chunks of the task, by inverse kinematics.

    The joints follow the pose alone, so chunks that overlap agree. At the beginning a redundant arm may be in another
    posture: it goes from there to its usual one while the tool moves.

    Args:
        task: commands joints, and may command a gripper.
        arm: kinematics of its robot.

    Raises:
        TaskError: the task commands no joints, or more than these and a gripper.
    """

    def __init__(self, task: Task, arm: ArmModel) -> None:
        kinds = [item.kind for item in task.action]
        if "joints" not in kinds or set(kinds) - {"joints", "gripper"}:
            raise TaskError(
                f"task '{task.name}' commands {', '.join(kinds)}; valid are joints, with or without gripper"
            )
        self._task, self._tool, self._arm = task, tool_task(task), arm
        self._rest = np.array(arm.rest)
        self._columns = {item.kind: part for item, part in self._tool.action_columns}
        self._begin_ns, self._stamp_ns, self._duration_s = 0, 0, 0.0
        self._measured = self._near = self._rest

    def begin(self, joints: ArrayLike, now_ns: int) -> None:
        """Begin a motion at measured joints ``(joints,)`` rad."""
        self._measured = self._near = np.asarray(joints, dtype=np.float64).copy()
        self._begin_ns = self._stamp_ns = now_ns
        self._duration_s = PEAK_SPEED * float(np.abs(self._rest - self._measured).max()) / POSTURE_SPEED

    def convert(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk ``(H, D)`` of the task for a chunk of :func:`tool_task`, row by row.

        Raises:
            ArmError: a pose is out of the arm's reach.
        """
        rows, columns = chunk.actions, self._columns
        rest = self._rests(chunk.stamp_ns, len(rows), chunk.dt_ns)
        joints = self._arm.chain.inverse(
            rows[:, columns["position"]], matrix_from_6d(rows[:, columns["rotation_6d"]]), self._near, rest
        )
        self._near, self._stamp_ns = joints[0], chunk.stamp_ns
        return replace(chunk, actions=self._actions(joints, rows, columns))

    def solve(self, samples: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the joints ``(N, H, joints)`` of motions ``(N, H, D)``, and which of them are in reach ``(N,)``.

        They begin when the chunk converted last does.
        """
        count, steps, _ = samples.shape
        rows, columns = samples.reshape(count * steps, -1), self._columns
        rest = self._rests(self._stamp_ns, steps, self._task.dt_ns)
        position, rotation = rows[:, columns["position"]], matrix_from_6d(rows[:, columns["rotation_6d"]])
        # The samples lie close together: from the first one's joints the others take a step or two.
        first, _ = self._arm.chain.solve(position[:steps], rotation[:steps], self._near, rest, ROUGHLY_RAD)
        near, rests = np.tile(first, (count, 1)), np.tile(rest, (count, 1))
        joints, reached = self._arm.chain.solve(position, rotation, near, rests, ROUGHLY_RAD)
        whole: NDArray[np.bool_] = np.asarray(reached.reshape(count, steps).all(axis=1))
        return joints.reshape(count, steps, -1), whole

    def _rests(self, stamp_ns: int, steps: int, dt_ns: int) -> Array:
        """Return the postures ``(steps, joints)`` that a redundant arm is drawn to."""
        since = (stamp_ns - self._begin_ns + np.arange(steps) * dt_ns) / NANOSECONDS
        share = minimum_jerk(since, 0.0, self._duration_s)[:, None]
        rests: Array = self._measured + share * (self._rest - self._measured)
        return rests

    def _actions(self, joints: Array, rows: Array, columns: Mapping[FeatureKind, slice]) -> Array:
        actions = np.zeros((len(rows), self._task.action_dim))
        for feature, place in self._task.action_columns:
            actions[:, place] = joints if feature.kind == "joints" else rows[:, columns["gripper"]]
        return actions


class TaskChunks:
    """Makes chunks that command the tool's pose into chunks of a task. Of a task without joints they are that already.

    Args:
        task: of the system.
        arm: of a task that commands joints. None: chunks stay as they are.

    Attributes:
        joints: makes chunks of poses into chunks of joints; None: they stay as they are.
    """

    def __init__(self, task: Task, arm: ArmModel | None) -> None:
        self.joints = None if arm is None else JointChunks(task, arm)
        self._tool = tool_task(task)

    def begin(self, joints: ArrayLike, now_ns: int) -> None:
        """Begin a motion at measured joints in rad."""
        if self.joints is not None:
            self.joints.begin(joints, now_ns)

    def of(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk of the task. Raises ArmError if a pose is out of the arm's reach."""
        if isinstance(chunk, PlannedChunk):
            chunk = chunk.of(self._tool)
        return chunk if self.joints is None else self.joints.convert(chunk)

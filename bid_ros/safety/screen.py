"""Screens samples of a policy: those whose motion the safety node would refuse are not worth choosing."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks
from bid_ros.control.task_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.task import Task
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.motion import MotionEnvelope


class Screen:
    """Tells which samples keep the limits that the envelope has of motions. The safety node still judges.

    A refused chunk stops the arm. A policy that samples many chunks nearly always has others. Of a chunk all rows from
    the current step on count, as in :class:`bid_ros.safety.envelope.Envelope`. Rotation and gripper do not. Of a task
    that commands joints the limits of these count too, and those of the tool's turning: its pose is what forward
    kinematics say.

    Args:
        task: its limits, and the columns of its position or joints.
        arm: of a task that commands joints; None: its samples are not screened.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        self._motion = MotionEnvelope(task, arm)
        self._first, self._step_s = task.observation_steps - 1, task.dt_ns / NANOSECONDS

    def passes(self, samples: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return for each of the samples ``(N, H, D)`` whether it keeps the limits, ``(N,)``."""
        return self._motion.keeps(np.asarray(samples[:, self._first :], dtype=np.float64), self._step_s)


class JointScreen:
    """Screens samples of a policy that predicts poses of the tool, where its chunks become chunks of joints.

    Args:
        task: of the policy, which predicts poses.
        chunks: makes its chunks into the system's.
        joints: limits of the joints.
    """

    def __init__(self, task: Task, chunks: JointChunks, joints: JointEnvelope) -> None:
        self._tool, self._chunks, self._joints = Screen(task), chunks, joints
        self._first, self._step_s = task.observation_steps - 1, task.dt_ns / NANOSECONDS

    def passes(self, samples: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return for each of the samples ``(N, H, D)`` whether tool and joints keep the limits, ``(N,)``."""
        passed = self._tool.passes(samples)
        if not passed.any():
            return passed
        rows = np.asarray(samples[passed, self._first :], dtype=np.float64)
        joints, reached = self._chunks.solve(rows)
        passed[passed] = reached & self._joints.keeps(joints, self._step_s)
        return passed


def policy_chunks(task: Task, policy_task: Task, arm: ArmModel | None) -> tuple[TaskChunks, Callable[[Any], Any]]:
    """Return what makes a policy's chunks into a task's, and what screens its samples.

    Args:
        task: of the system.
        policy_task: that the policy was made for: the system's, or one that commands poses where the system's commands
            joints.
        arm: of a system that commands joints, else None.
    """
    if policy_task.columns("joints") is None and arm is not None:
        chunks, joints = TaskChunks(task, arm), JointEnvelope(arm.limits, task.limits)
        if chunks.joints is not None:
            return chunks, JointScreen(policy_task, chunks.joints, joints).passes
    return TaskChunks(task, None), Screen(policy_task, arm).passes

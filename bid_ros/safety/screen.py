"""Screens samples of a policy: those whose motion the safety node would refuse are not worth choosing."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks, TaskChunks
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.task import Task
from bid_ros.safety.bound import all_kept
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.motion import MotionEnvelope
from bid_ros.safety.posture import PostureEnvelope


class Screen:
    """Tells which samples keep the limits that the envelope has of motions. The safety node still judges.

    A refused chunk stops the arm. A policy that samples many chunks nearly always has others. Of a chunk all rows from
    the current step on count, as in :class:`bid_ros.safety.envelope.Envelope`. Rotation and gripper do not. Of a task
    that commands joints the limits of these count too, and those of the tool's turning: its pose is what forward
    kinematics say.

    Args:
        task: its limits, and the columns of its position or joints.
        arm: of a task that commands joints; None: its samples are not screened.
        made: of a task that commands poses where its chunks become chunks of joints: what makes them, and the limits of
            the joints.
        posed: of a task whose poses the robot itself follows with its joints, the arm. They are judged while they are
            measured. None: nothing is known of them.

    Attributes:
        measured: joints ``(joints,)`` rad at the decision; None: nobody knows them.
    """

    def __init__(
        self,
        task: Task,
        arm: ArmModel | None = None,
        made: tuple[JointChunks, JointEnvelope] | None = None,
        posed: ArmModel | None = None,
    ) -> None:
        self._motion, self._made = MotionEnvelope(task, arm), made
        self._posture = PostureEnvelope.known(task, posed)
        self.measured: ArrayLike | None = None
        self._first, self._step_s = task.observation_steps - 1, task.dt_ns / NANOSECONDS

    def passes(self, samples: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return for each of the samples ``(N, H, D)`` whether it keeps the limits, ``(N,)``."""
        rows = np.asarray(samples[:, self._first :], dtype=np.float64)
        passed = self._motion.keeps(rows, self._step_s)
        if self._made is not None and passed.any():
            chunks, limits = self._made
            joints, reached = chunks.solve(rows[passed])
            passed[passed] = reached & limits.keeps(joints, self._step_s)
        if self._posture is not None and passed.any() and not any(self._posture.unknown(self.measured)):
            assert self.measured is not None
            bounds = self._posture.bounds(self._motion.pose(rows[passed]), self.measured, self._step_s)
            passed[passed] = all_kept(int(passed.sum()), bounds)
        return passed


def policy_chunks(task: Task, policy_task: Task, arm: ArmModel | None) -> tuple[TaskChunks, Screen]:
    """Return what makes a policy's chunks into a task's, and what screens its samples.

    A replay does not know the measured joints. So samples are not screened by the joints that poses need.

    Args:
        task: of the system.
        policy_task: that the policy was made for: the system's, or one that commands poses where the system's commands
            joints.
        arm: of a system that commands joints, else None.
    """
    if policy_task.columns("joints") is None and arm is not None:
        chunks, joints = TaskChunks(task, arm), JointEnvelope(arm.limits, task.limits)
        if chunks.joints is not None:
            return chunks, Screen(policy_task, made=(chunks.joints, joints))
    return TaskChunks(task, None), Screen(policy_task, arm)

"""Screens samples of a policy: those whose motion the safety node would refuse are not worth choosing."""

from dataclasses import replace

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
from bid_ros.safety.self_collision import SelfCollision


class Screen:
    """Tells which samples keep the limits that the envelope has of motions. The safety node still judges.

    A refused chunk stops the arm. A policy that samples many chunks nearly always has others. All rows of a chunk from
    the current step on are checked, as in :class:`bid_ros.safety.envelope.Envelope`: position, turning, gripper speed
    and keep-out places. Where a task commands joints, their limits are checked too, and forward kinematics give the
    tool's pose.

    Args:
        task: its limits, and the columns of its position or joints.
        arm: of a task that commands joints; None: its samples are not screened.
        made: of a task that commands poses where its chunks become chunks of joints: what makes them, and the limits of
            the joints.
        posed: of a task whose poses the robot itself follows with its joints, the arm. None: nothing is known of them.
        apart: of ``made``, keeps the arm's parts off one another; None: the task does not ask for it.

    Attributes:
        measured: joints ``(joints,)`` rad at the decision, from which the joints behind poses are predicted; None: they
            are not known, and the joints behind poses are not judged.
        free: checks the prediction ``(H, D)`` that a decoder chose against the limits that take too long to check in
            all samples: the joints behind poses, and the distances between the arm's parts. None: the task asks for
            neither, or the arm is not known.
        rest: as :meth:`passes`, but checks the joints behind poses, without the distances between the arm's parts. Used
            for the other samples once a choice broke a limit. None: the task commands joints, or the arm is not known.
    """

    def __init__(
        self,
        task: Task,
        arm: ArmModel | None = None,
        made: tuple[JointChunks, JointEnvelope] | None = None,
        posed: ArmModel | None = None,
        apart: SelfCollision | None = None,
    ) -> None:
        self._motion, self._made = MotionEnvelope(task, arm), made
        self._posture = PostureEnvelope.known(task, posed)
        self._joints = task.columns("joints")
        self._apart = apart or (None if arm is None else SelfCollision.asked(task, arm))
        self.free = None if self._apart is None and self._posture is None else self._stays_free
        self.rest = None if self._posture is None else self._posed
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
        return passed

    def _posed(self, samples: NDArray[np.floating], apart: bool = False) -> NDArray[np.bool_]:
        if self._posture is None or any(self._posture.unknown(self.measured)):
            return np.ones(len(samples), dtype=bool)
        rows = np.asarray(samples[:, self._first :], dtype=np.float64)
        assert self.measured is not None
        bounds = self._posture.bounds(self._motion.pose(rows), self.measured, self._step_s, apart=apart)
        return all_kept(len(rows), bounds)

    def _stays_free(self, prediction: NDArray[np.floating]) -> bool:
        if self._apart is None:
            return bool(self._posed(prediction[None], apart=True)[0])
        rows = np.asarray(prediction[None, self._first :], dtype=np.float64)
        joints = rows[..., self._joints] if self._made is None else self._made[0].solve(rows)[0]
        return bool(all_kept(1, self._apart.bounds(joints))[0])


def policy_chunks(
    task: Task, policy_task: Task, arm: ArmModel | None, posed: ArmModel | None = None
) -> tuple[TaskChunks, Screen]:
    """Return what makes a policy's chunks into a task's, and what screens its samples.

    Args:
        task: of the system.
        policy_task: that the policy was made for: the system's, or one that commands poses where the system's commands
            joints.
        arm: of a system that commands joints, else None.
        posed: of a system that commands poses, the arm that follows them; None: nobody knows it, or the joints are not
            measured.
    """
    if policy_task.columns("joints") is None and arm is not None:
        chunks, joints = TaskChunks(task, arm), JointEnvelope(arm.limits, task.limits)
        if chunks.joints is not None:
            return chunks, Screen(policy_task, made=(chunks.joints, joints), apart=SelfCollision.asked(task, arm))
    own = replace(policy_task, limits=task.limits, tool_shape=task.tool_shape)  # a renamed task may have other ones
    return TaskChunks(task, None), Screen(own, arm, posed=posed)

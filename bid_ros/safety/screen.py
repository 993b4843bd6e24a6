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

    A refused chunk stops the arm. A policy that samples many chunks nearly always has others. Of a chunk all rows from
    the current step on count, as in :class:`bid_ros.safety.envelope.Envelope`: the position, the turning, the gripper's
    speed and the places that are kept out. Of a task that commands joints the limits of these count too; the tool's
    pose is what forward kinematics say.

    Args:
        task: its limits, and the columns of its position or joints.
        arm: of a task that commands joints; None: its samples are not screened.
        made: of a task that commands poses where its chunks become chunks of joints: what makes them, and the limits of
            the joints.
        posed: of a task whose poses the robot itself follows with its joints, the arm. None: nothing is known of them.
        apart: of ``made``, keeps the arm's parts off one another; None: the task does not ask for it.

    Attributes:
        measured: joints ``(joints,)`` rad at the decision, with which those behind poses are predicted; None: nobody
            knows them, and they are not judged.
        free: returns whether a prediction ``(H, D)`` keeps the limits that take too long to look at in all samples, so
            it is for what a decoder chose: the joints behind poses, and the arm's parts, which stay off one another.
            None: the task asks for neither, or the arm is not known.
        rest: as :meth:`passes`, of the joints behind poses, but not of how near the arm's parts come: for the others,
            once a choice did not keep the limits. None: the task commands joints, or the arm is not known.
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

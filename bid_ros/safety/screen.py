"""Screens samples of a policy: those whose motion the safety node would refuse are not worth choosing."""

import math

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.task import Task
from bid_ros.safety.envelope import turns
from bid_ros.safety.joints import JointEnvelope


class Screen:
    """Tells which samples keep the task's workspace, speed, acceleration and jerk. The safety node still judges.

    A refused chunk stops the arm. A policy that samples many chunks nearly always has others. Of a chunk all rows from
    the current step on count, as in :class:`bid_ros.safety.envelope.Envelope`. Rotation and gripper do not. Of a task
    that commands joints the limits of these count too, and those of the tool's turning: its pose is what forward
    kinematics say.

    Args:
        task: its limits, and the columns of its position or joints.
        arm: of a task that commands joints; None: its samples are not screened.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        limits = task.limits
        self._arm, self._joint_columns = arm, task.columns("joints")
        self._joints = None if arm is None else JointEnvelope(arm.limits, limits)
        self._columns, self._first = task.columns("position"), task.observation_steps - 1
        self._step_s = task.dt_ns / NANOSECONDS
        self._low, self._high = np.array(limits.workspace_min), np.array(limits.workspace_max)
        self._most = limits.max_speed, limits.max_acceleration, limits.max_jerk
        self._turning, self._upright = (limits.max_turn_rate, limits.max_turn_acceleration), math.cos(limits.max_tilt)

    def passes(self, samples: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return for each of the samples ``(N, H, D)`` whether it keeps the limits, ``(N,)``."""
        kept: list[NDArray[np.bool_]] = []
        rows = np.asarray(samples[:, self._first :], dtype=np.float64)
        if self._arm is not None and self._joints is not None and self._joint_columns is not None:
            joints = rows[..., self._joint_columns]
            difference, turned = self._arm.forward(joints)
            kept = [self._joints.keeps(joints, self._step_s), self._turns_slowly(turned)]
        elif self._columns is not None:
            difference = rows[..., self._columns]
        else:
            return np.ones(len(samples), dtype=bool)
        inside: NDArray[np.bool_] = np.logical_and(self._low <= difference, difference <= self._high)
        kept.append(np.asarray(inside.all(axis=(1, 2))))
        for most in self._most:
            difference = np.diff(difference, axis=1) / self._step_s
            kept.append((np.einsum("nij,nij->ni", difference, difference) <= most**2).all(axis=1))
        passed: NDArray[np.bool_] = np.all(kept, axis=0)
        return passed

    def _turns_slowly(self, turned: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of the motions of the tool's axes ``(N, n, 3, 3)`` keep the limits of turning and tilt."""
        rates = turns(turned) / self._step_s
        changes = np.diff(rates, axis=1) / self._step_s
        kept = [(turned[..., 2, 2] <= -self._upright).all(axis=1)]
        for vectors, most in ((rates, self._turning[0]), (changes, self._turning[1])):
            kept.append((np.einsum("nij,nij->ni", vectors, vectors) <= most**2).all(axis=1))
        slow: NDArray[np.bool_] = np.all(kept, axis=0)
        return slow


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

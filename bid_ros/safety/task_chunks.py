"""Chunks of the tool's pose made into a task's, and samples screened, for whoever plans for the tool."""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.screen import JointScreen, Screen


class TaskChunks:
    """Makes chunks that command the tool's pose into chunks of a task. Of a task without joints they are that already.

    Args:
        task: of the system.
        arm: of a task that commands joints. None: chunks stay as they are.
    """

    def __init__(self, task: Task, arm: ArmModel | None) -> None:
        self._joints = None if arm is None else JointChunks(task, arm)
        self._envelope = None if arm is None else JointEnvelope(arm.limits, task.limits)

    @property
    def makes_joints(self) -> bool:
        """Whether chunks of poses become chunks of joints."""
        return self._joints is not None

    def screen(self, policy_task: Task) -> Callable[[Any], NDArray[Any]]:
        """Return what screens the samples of a policy that predicts poses, for a task of its own."""
        if self._joints is None or self._envelope is None:
            return Screen(policy_task).passes
        return JointScreen(policy_task, self._joints, self._envelope).passes

    def begin(self, joints: ArrayLike, now_ns: int) -> None:
        """Begin a motion at measured joints in rad."""
        if self._joints is not None:
            self._joints.begin(joints, now_ns)

    def of(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk of the task. Raises ArmError if a pose is out of the arm's reach."""
        return chunk if self._joints is None else self._joints.convert(chunk)


def policy_chunks(task: Task, policy_task: Task, arm: ArmModel | None) -> tuple[TaskChunks, Callable[[Any], Any]]:
    """Return what makes a policy's chunks into a task's, and what screens its samples.

    Args:
        task: of the system.
        policy_task: that the policy was made for: the system's, or one that commands poses where the system's commands
            joints.
        arm: of a system that commands joints, else None.
    """
    if policy_task.columns("joints") is None and arm is not None:
        chunks = TaskChunks(task, arm)
        return chunks, chunks.screen(policy_task)
    return TaskChunks(task, None), Screen(policy_task, arm).passes

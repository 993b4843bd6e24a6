"""Chunks of the tool's pose made into a task's, for whoever plans for the tool."""

from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task


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

    def begin(self, joints: ArrayLike, now_ns: int) -> None:
        """Begin a motion at measured joints in rad."""
        if self.joints is not None:
            self.joints.begin(joints, now_ns)

    def of(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk of the task. Raises ArmError if a pose is out of the arm's reach."""
        return chunk if self.joints is None else self.joints.convert(chunk)

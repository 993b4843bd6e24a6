"""Joints at the edge of nodes: what is known of the arm, and chunks of the tool made into the task's."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import JointChunks
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.nodes.parameters import Parameter
from bid_ros.robots.registry import task_arm
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.screen import JointScreen, Screen

ARM_CONFIG: Final = Parameter(
    "arm_config", "", "path of the robot's configuration file, if the task commands joints; empty: the robot's defaults"
)
TWIN: Final = Parameter("twin", False, "the system runs in its twin: the section `twin` of arm_config holds")


def arm_of(node: Any, task: Task) -> ArmModel | None:
    """Return kinematics and limits of the joints that a node's task commands; None if it commands none.

    Raises:
        BidError: as :func:`bid_ros.robots.registry.task_arm`.
    """
    return task_arm(task, node.value("arm_config"), node.value("twin"))


class TaskChunks:
    """Makes chunks that command the tool's pose into chunks of a task. Of a task without joints they are that already.

    Args:
        task: of the system.
        arm: of a task that commands joints, else None.
    """

    def __init__(self, task: Task, arm: ArmModel | None) -> None:
        self._joints = None if arm is None else JointChunks(task, arm)
        self._envelope = None if arm is None else JointEnvelope(arm.limits, task.limits)

    def screen(self, policy_task: Task) -> Callable[[Any], NDArray[np.bool_]]:
        """Return what screens the samples of a policy that predicts poses, for a task of its own."""
        if self._joints is None or self._envelope is None:
            return Screen(policy_task).passes
        return JointScreen(policy_task, self._joints, self._envelope).passes

    def begin(self, status: Any, now_ns: int) -> None:
        """Begin a motion where an ArmStatus message says that the joints are."""
        if self._joints is not None:
            self._joints.begin(status.joint_positions, now_ns)

    def of(self, chunk: ActionChunk) -> ActionChunk:
        """Return the chunk of the task. Raises ArmError if a pose is out of the arm's reach."""
        return chunk if self._joints is None else self._joints.convert(chunk)

"""Joints at the edge of nodes: what is known of the arm."""

from typing import Any, Final

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.task import Task
from bid_ros.nodes.parameters import Parameter
from bid_ros.robots.registry import task_arm

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

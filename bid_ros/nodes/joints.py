"""Joints at the edge of nodes: what is known of the arm."""

from typing import Any, Final

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.nodes.parameters import Parameter
from bid_ros.robots.registry import posed_arm, task_arm
from bid_ros.safety.self_collision import check_known, check_posed, poses

ARM_CONFIG: Final = Parameter(
    "arm_config", "", "path of the robot's configuration file, for its joints; empty: the robot's defaults"
)
TWIN: Final = Parameter("twin", False, "the system runs in its twin: the section `twin` of arm_config holds")


def arm_of(node: Any, task: Task) -> ArmModel | None:
    """Return kinematics and limits of the joints that a node's task commands; None if it commands none.

    Raises:
        BidError: as :func:`bid_ros.robots.registry.task_arm`.
    """
    return task_arm(task, node.value("arm_config"), node.value("twin"))


def check_configured(node: Any) -> None:
    """Raise BidError for a robot, not its twin, without a configuration file: its joints would not be judged."""
    if not node.value(ARM_CONFIG.name) and not node.value(TWIN.name):
        raise BidError(
            "arm_config is empty, so nobody knows the joints of the robot and their limits; valid is the path of its "
            "robot.yaml, or twin: true for a system in its twin"
        )


def posed_arm_of(node: Any, task: Task) -> ArmModel | None:
    """Return kinematics and limits of the joints that follow the poses of a node's task; None if nobody knows them.

    Without a configuration file, which only a twin may lack, nobody does: the limits would be those of another robot.
    Says so in the log.

    Raises:
        TaskError: the task asks for a least distance, but commands no rotation; or there is a file, and nobody knows
            the joints or shapes.
    """
    config = node.value("arm_config")
    if task.columns("joints") is not None:
        return None
    try:
        arm = posed_arm(task, config, node.value("twin")) if config else None
        missing = "" if arm is not None else "no configuration file of the robot is named"
        missing = missing if poses(task) else f"task '{task.name}' commands no rotation_6d"
    except BidError as error:
        arm, missing = None, str(error)
    if missing:
        node.get_logger().warning(f"the joints behind the poses are not judged: {missing}")
    if config:
        check_known(task, arm)
    else:
        check_posed(task)
    return arm

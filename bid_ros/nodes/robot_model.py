"""Publishes the outline of the robot, for RViz: ``robot_description``, and a transform for each link."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from geometry_msgs.msg import TransformStamped
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import ArmStatus
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ArmError, BidError, RecordingError
from bid_ros.core.extras import extra
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ROBOT_DESCRIPTION, TF, TF_STATIC_QOS, Topic
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.ros_messages import transform_message

if TYPE_CHECKING:
    from bid_ros.views.outline import LinkPose, Outline

FRAMES: Final = "outline/"  # precedes the names of the links, so that those of robot_state_publisher stay its own
PERIOD_NS: Final = NANOSECONDS // 20  # between two transforms of a link


class RobotModel:
    """The outline of a robot on ROS topics. One thread only.

    Args:
        node: publishes.
        task: names robot and base frame.
        outline: of the robot.
    """

    def __init__(self, node: BidNode, task: Task, outline: "Outline") -> None:
        from bid_ros.views.outline import write_urdf

        self._node, self._outline, self._base = node, outline, task.base_frame
        self._prefix = node.frame_prefix + FRAMES
        self._transforms, self._told_ns = node.advertise(TF), 0
        description = node.advertise(ROBOT_DESCRIPTION, Topic("std_msgs/msg/String", TF_STATIC_QOS))
        description.publish(String(data=write_urdf(outline, _folder(task, self._prefix), self._prefix)))

    def add(self, status: ArmStatus) -> None:
        """Publish where the links are, 20 times a second at most; nothing if the status says no joints, or others."""
        at_ns = stamp_ns(status)
        # A clock that was set back must not stop it.
        if 0 <= at_ns - self._told_ns < PERIOD_NS or not len(status.joint_positions):
            return
        self._told_ns = at_ns
        try:
            poses = self._outline.poses(status.joint_positions, status.gripper_width)
        except RecordingError as error:
            self._node.get_logger().warning(f"the robot model stands still: {error}", throttle_duration_sec=10.0)
            return
        self._transforms.publish(TFMessage(transforms=[self._transform(pose, status) for pose in poses]))

    def _transform(self, pose: "LinkPose", status: ArmStatus) -> TransformStamped:
        parent = self._prefix + pose.parent if pose.parent else self._base
        return transform_message(stamp_ns(status), parent, self._prefix + pose.link, pose.position, pose.quaternion)


def robot_model(node: BidNode, task: Task) -> RobotModel | None:
    """Return what publishes the outline of a task's robot; None, and a line in the log, where there is none.

    A robot that is driven through ROS has a description of its own, which its driver publishes.
    """
    try:
        with extra("twin", "the outline of the robot", ArmError):
            from bid_ros.views.outline import outline_of
        return RobotModel(node, task, outline_of(task))
    except (BidError, OSError, RuntimeError) as error:  # the last: a user without a home folder
        node.get_logger().info(f"no robot model: {error}")
        return None


def _folder(task: Task, prefix: str) -> Path:
    """Return the folder of the surfaces, in the user's cache folder: one for each robot and each namespace."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "bid_ros" / "outlines" / task.robot / prefix.strip("/").replace("/", "_")

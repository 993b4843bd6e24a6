"""What the arm node publishes of the arm: its status, and the same measurements in the messages of ROS."""

import math

import numpy as np
from geometry_msgs.msg import PoseStamped, TransformStamped
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import ArmStatus
from bid_ros.control.servo_base import ServoOutput
from bid_ros.core import topics
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import newer
from bid_ros.core.task import Task
from bid_ros.nodes import ros_messages
from bid_ros.nodes.base import BidNode
from bid_ros.robots.base import ArmInfo, ArmState


class ArmReport:
    """Publishes the state of the arm. It fills the same messages again: making one costs more than sending it.

    One thread only.

    Args:
        node: publishes.
        task: names the frames.
        info: of the arm.
        standard_rate_hz: joint states, tool poses and transforms a second, at most.
        joints: publish joint states.
    """

    def __init__(self, node: BidNode, task: Task, info: ArmInfo, standard_rate_hz: int, joints: bool = True) -> None:
        self._pause_ns = 0.9 * NANOSECONDS / standard_rate_hz  # stamps jitter by the period of the robot's reader
        self._told, self._told_ns, self._standard_ns = (ArmStatus.HOLDING, ""), 0, 0
        self._statuses = node.advertise(topics.ARM_STATUS)
        self._tool_poses = node.advertise(topics.TOOL_POSE)
        self._transforms = node.advertise(topics.TF)
        self._joint_states = node.advertise(topics.JOINT_STATES) if joints else None
        commands_joints = task.columns("joints") is not None
        self._joint_references = node.advertise(topics.JOINT_REFERENCE) if commands_joints else None
        self._status = ArmStatus(robot=node.robot)
        self._pose = PoseStamped()
        self._transform = TransformStamped(child_frame_id=task.tool_frame)
        for message in (self._status, self._pose, self._transform):
            message.header.frame_id = task.base_frame
        self._base_frame, self._info = task.base_frame, info

    def publish(
        self, output: ServoOutput, state: ArmState, now_ns: int, fault: str, latched: str, gripper: float
    ) -> bool:
        """Publish the state if it is a new one, and the status if its mode changed; return whether one was.

        The robot's reader is another thread: where this one runs late, two of its periods may find the same state. A
        stamp that is said twice is no second measurement, and tf2 warns of it.

        Args:
            output: of the servo.
            state: of the robot.
            now_ns: ROS time of ``output``.
            fault: of the robot, empty without one.
            latched: why the servo is latched, or why it follows nothing; empty if it follows, or nobody knows.
            gripper: newest commanded opening, m.
        """
        self._fill(output, state, now_ns, fault, latched, gripper)
        told, told_ns = (self._status.mode, self._status.reason), state.stamp_ns
        new, changed = newer(told_ns, self._told_ns), told != self._told
        self._told, self._told_ns = told, told_ns
        if new or changed or fault:  # a robot that is silent is told of too
            self._statuses.publish(self._status)
            self._publish_joints(output, now_ns)
        if new and not 0 <= told_ns - self._standard_ns <= self._pause_ns:
            self._standard_ns = told_ns
            self._publish_standard(state)
        return new or changed or bool(fault)

    def _fill(
        self, output: ServoOutput, state: ArmState, now_ns: int, fault: str, latched: str, gripper: float
    ) -> None:
        message, setpoint = self._status, output.setpoint
        ros_messages.set_time(message.header.stamp, state.stamp_ns)
        message.mode = ArmStatus.FAULT if fault else getattr(ArmStatus, output.mode.name)
        message.reason = fault or latched
        message.source, message.sequence = output.source, output.sequence
        message.command_age = output.command_age_s
        ros_messages.set_pose(message.tool, state.tool_position, state.tool_quaternion)
        message.joint_positions = ros_messages.float64_array(state.joint_positions)
        message.gripper_width, message.gripper_busy = state.gripper_width, state.gripper_busy
        ros_messages.set_pose(message.reference, setpoint.position, setpoint.quaternion)
        ros_messages.set_time(message.reference_stamp, now_ns)
        message.reference_twist = np.concatenate([setpoint.linear_velocity, setpoint.angular_velocity])
        message.reference_gripper = gripper

    def _publish_joints(self, output: ServoOutput, now_ns: int) -> None:
        """Publish the joints that were streamed to the robot, of a task that commands them."""
        if self._joint_references is not None and output.joints is not None:
            message = JointState(header=ros_messages.header(now_ns, self._base_frame), name=self._info.joint_names)
            message.position = ros_messages.float64_array(output.joints.positions)
            message.velocity = ros_messages.float64_array(output.joints.velocities)
            self._joint_references.publish(message)

    def _publish_standard(self, state: ArmState) -> None:
        """Publish the measurements once more, in the messages of ROS."""
        for message in (self._pose, self._transform):
            ros_messages.set_time(message.header.stamp, state.stamp_ns)
        ros_messages.set_pose(self._pose.pose, state.tool_position, state.tool_quaternion)
        self._tool_poses.publish(self._pose)
        tool, place = self._transform.transform, self._pose.pose.position
        tool.translation.x, tool.translation.y, tool.translation.z = place.x, place.y, place.z
        tool.rotation = self._pose.pose.orientation
        self._transforms.publish(TFMessage(transforms=[self._transform]))
        if self._joint_states is not None:
            for message in joint_messages(self._info, state, self._base_frame):
                self._joint_states.publish(message)


def joint_messages(info: ArmInfo, state: ArmState, frame: str) -> list[JointState]:
    """Return the joints of an arm, and apart from them those of its fingers, which have no measured velocity.

    Each finger has half of the opening. While the opening is not known, the fingers are left out. No value is NaN.
    """
    header = ros_messages.header(state.stamp_ns, frame)
    known = np.isfinite(state.joint_velocities).all()
    velocities = state.joint_velocities.tolist() if known else []
    arm = JointState(header=header, name=info.joint_names, position=state.joint_positions.tolist(), velocity=velocities)
    if not info.finger_names or not math.isfinite(state.gripper_width):
        return [arm]
    fingers = [state.gripper_width / 2] * len(info.finger_names)
    return [arm, JointState(header=header, name=info.finger_names, position=fingers)]

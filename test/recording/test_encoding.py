"""Messages made without ROS are what ROS reads."""

from __future__ import annotations

import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.recording.definitions import Encoder


def test_ros_reads_every_field():
    status = ArmStatus(mode=1, source="teleop", gripper_width=0.04, joint_positions=[0.1, 0.2], gripper_busy=True)
    status.header.stamp.sec, status.header.frame_id = 5, "base"
    status.tool.orientation.w, status.reference_twist[2] = 0.5, 0.25
    status.tool.orientation.x = status.tool.orientation.y = status.tool.orientation.z = 0.0
    status.reference.orientation.w = 0.0  # ROS's own default is 1
    values = {
        "header": {"stamp": {"sec": 5}, "frame_id": "base"},
        "mode": 1,
        "source": "teleop",
        "gripper_width": 0.04,
        "joint_positions": [0.1, 0.2],
        "gripper_busy": True,
        "tool": {"orientation": {"w": 0.5}},
        "reference_twist": [0, 0, 0.25, 0, 0, 0],
    }
    # Not byte by byte: ROS leaves what it likes between two values.
    assert deserialize_message(Encoder("bid_msgs/msg/ArmStatus").encode(values), ArmStatus) == status


def test_text_and_empty_messages():
    text = Encoder("std_msgs/msg/String").encode({"data": "ä cup"})
    assert deserialize_message(text, String).data == "ä cup"
    pose = deserialize_message(Encoder("geometry_msgs/msg/PoseStamped").encode({}), PoseStamped)
    assert pose.pose.orientation.w == 0.0 and pose.header.frame_id == ""


def test_unknown_fields_and_types_are_named():
    with pytest.raises(RecordingError, match="std_msgs/msg/String has no field text; valid are data"):
        Encoder("std_msgs/msg/String").encode({"text": "x"})
    with pytest.raises(RecordingError, match="no_msgs/msg/None"):
        Encoder("no_msgs/msg/None")

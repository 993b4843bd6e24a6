"""A person drives: ``ros2 launch bid_ros teleop.launch.py system:=FOLDER device:=joy``; the twin without robot_ip."""

from bid_ros.nodes.launching import teleop_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return teleop_description()

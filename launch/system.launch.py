"""Any system: ``ros2 launch bid_ros system.launch.py system:=FOLDER``; in its twin when no robot_ip is given."""

from bid_ros.nodes.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return launch_description()

"""Dynamic placing on a Franka arm, or on its twin when no robot_ip is given."""

from bid_ros.nodes.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return launch_description("franka_place")

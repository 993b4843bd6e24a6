"""Dynamic picking on a UR5 or UR5e, or on its twin when no robot_ip is given."""

from bid_ros.nodes.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return launch_description("ur5_pick")

"""A replay of a bag through the live nodes: ``ros2 launch bid_ros replay.launch.py system:=FOLDER bag:=BAG``."""

from bid_ros.nodes.launching import replay_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return replay_description()

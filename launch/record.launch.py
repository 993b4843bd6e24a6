"""Record episodes: ``ros2 launch bid_ros record.launch.py system:=FOLDER driver:=page``.

With ``driver:=policy takeover:=page`` a policy drives, and a person takes over.
"""

from bid_ros.nodes.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    defaults = {"driver": "page", "human": True, "image_codec": "png", "episodes": 10, "timeout": 120.0}
    return launch_description(defaults={**defaults, "out": "out/record"})

"""Times of messages as integer nanoseconds.

Messages are read by their field names only, so rclpy's messages and those decoded from a bag both work.
"""

from __future__ import annotations

from typing import Any

from bid_ros.core.chunk import NANOSECONDS


def stamp_to_ns(stamp: Any) -> int:
    """Nanoseconds of a ``builtin_interfaces`` Time or Duration."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def stamp_ns(message: Any) -> int:
    """Nanoseconds of ``message.header.stamp``."""
    return stamp_to_ns(message.header.stamp)

"""Times of messages as integer nanoseconds.

Messages are read by their field names only, so rclpy's messages and those decoded from a bag both work.
"""

from typing import Any

from bid_ros.core.chunk import NANOSECONDS


def stamp_to_ns(stamp: Any) -> int:
    """Nanoseconds of a ``builtin_interfaces`` Time or Duration."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def stamp_ns(message: Any) -> int:
    """Nanoseconds of ``message.header.stamp``."""
    return stamp_to_ns(message.header.stamp)


def sample_ns(message: Any, arrived_ns: int) -> int:
    """Time of an observation in ns: the stamp of its header; without a header, its arrival (in a bag, its log time)."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    return arrived_ns if stamp is None else stamp_to_ns(stamp)

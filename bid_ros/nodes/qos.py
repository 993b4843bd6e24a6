"""ROS profiles of the qualities of service in ``core.topics``."""

from __future__ import annotations

from typing import Final

from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

from bid_ros.core.topics import COMMAND_QOS, EVENT_QOS, IMAGE_QOS, STATE_QOS, TF_QOS, TF_STATIC_QOS, Qos


def profile(qos: Qos, depth: int | None = None) -> QoSProfile:
    """Return the ROS profile of a quality of service, with another ``depth`` if given."""
    return QoSProfile(
        depth=depth or qos.depth,
        reliability=QoSReliabilityPolicy[qos.reliability.upper()],
        durability=QoSDurabilityPolicy[qos.durability.upper()],
    )


COMMAND: Final = profile(COMMAND_QOS)
STATE: Final = profile(STATE_QOS)
IMAGE: Final = profile(IMAGE_QOS)
EVENT: Final = profile(EVENT_QOS)
TRANSFORMS: Final = profile(TF_QOS)
STATIC_TRANSFORMS: Final = profile(TF_STATIC_QOS)
DRIVER_IMAGE: Final = profile(Qos(2, "best_effort"))
"""For the image topics of camera drivers. It works with every driver."""

"""The ROS profiles of the qualities of service in ``core.topics``, for a test's own publishers and subscriptions."""

from __future__ import annotations

from bid_ros.core import topics
from bid_ros.nodes.topics import profile

COMMAND = profile(topics.COMMAND_QOS)
STATE = profile(topics.STATE_QOS)
# A test that is held up loses none of these, as a node would that only needs the newest.
EVERY_COMMAND = profile(topics.COMMAND_QOS, 200)
EVERY_STATE = profile(topics.STATE_QOS, 1000)
IMAGE = profile(topics.IMAGE_QOS)
SCENES = profile(topics.SCENE_QOS)
EVENT = profile(topics.EVENT_QOS)
TRANSFORMS = profile(topics.TF_QOS)
STATIC_TRANSFORMS = profile(topics.TF_STATIC_QOS)

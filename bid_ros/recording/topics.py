"""Names and types of every recorded topic, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bid_ros.errors import TaskError
from bid_ros.task import Feature, Task

JOINT_STATES: Final = "/joint_states"
TOOL_POSE: Final = "/arm/tool_pose"
ARM_STATUS: Final = "/arm/status"
POLICY_CHUNK: Final = "/policy/chunk"
TELEOP_CHUNK: Final = "/teleop/chunk"
EPISODE_CHUNK: Final = "/episode/chunk"
SAFETY_CHUNK: Final = "/safety/chunk"
DECISION: Final = "/policy/decision"
SAFETY_STATE: Final = "/safety/state"
EPISODE_EVENT: Final = "/episode/event"
CUP_POSE: Final = "/ground_truth/cup_pose"
OBJECT_POSE: Final = "/ground_truth/object_pose"
SAUCER_POSE: Final = "/ground_truth/saucer_pose"
DIAGNOSTICS: Final = "/diagnostics"

IMAGE_TYPE: Final = "sensor_msgs/msg/Image"

TOPICS: Final[dict[str, str]] = {
    JOINT_STATES: "sensor_msgs/msg/JointState",
    TOOL_POSE: "geometry_msgs/msg/PoseStamped",
    ARM_STATUS: "bid_msgs/msg/ArmStatus",
    POLICY_CHUNK: "bid_msgs/msg/ActionChunk",
    TELEOP_CHUNK: "bid_msgs/msg/ActionChunk",
    EPISODE_CHUNK: "bid_msgs/msg/ActionChunk",
    SAFETY_CHUNK: "bid_msgs/msg/ActionChunk",
    DECISION: "bid_msgs/msg/Decision",
    SAFETY_STATE: "bid_msgs/msg/SafetyState",
    EPISODE_EVENT: "bid_msgs/msg/EpisodeEvent",
    CUP_POSE: "geometry_msgs/msg/PoseStamped",
    OBJECT_POSE: "geometry_msgs/msg/PoseStamped",
    SAUCER_POSE: "geometry_msgs/msg/PoseStamped",
    DIAGNOSTICS: "diagnostic_msgs/msg/DiagnosticArray",
}
"""Type of each recorded topic that is not a camera."""

LATCHED: Final = frozenset({EPISODE_EVENT})
"""Topics whose last message a late subscriber still gets (transient local)."""

FEATURE_TOPICS: Final[dict[str, str]] = {
    "tool_position": TOOL_POSE,
    "tool_rotation": TOOL_POSE,
    "gripper_width": ARM_STATUS,
    "joint_positions": JOINT_STATES,
}
"""Topic from which each observed vector is read; images come from :func:`camera_topic`."""


@dataclass(frozen=True)
class Qos:
    """The quality of service a topic was offered with, as a bag remembers it."""

    reliability: Literal["reliable", "best_effort"] = "reliable"
    durability: Literal["volatile", "transient_local"] = "volatile"
    history: Literal["keep_last", "keep_all"] = "keep_last"
    depth: int = 10


def camera_topic(name: str) -> str:
    """Return the topic of the camera ``name``: rgb8, already resized; the cameras of one pair share the stamp."""
    return f"/camera/{name}/image"


def feature_topic(feature: Feature) -> str:
    """Return the topic that delivers an observation feature.

    Raises:
        TaskError: if no topic is known for a vector of this name.
    """
    if feature.kind == "image":
        return camera_topic(feature.name)
    if feature.name not in FEATURE_TOPICS:
        raise TaskError(f"no topic delivers observation '{feature.name}'; valid are {', '.join(FEATURE_TOPICS)}")
    return FEATURE_TOPICS[feature.name]


def recorded_topics(task: Task) -> dict[str, str]:
    """Return name and type of every topic that is recorded for ``task``, its cameras first."""
    return {camera_topic(camera.name): IMAGE_TYPE for camera in task.cameras} | TOPICS

"""Name, type and quality of service of every topic, and the names of the services.

A name without a leading slash is relative to the namespace of its system: ``-r __ns:=/left`` moves it to
``/left/arm/status``. Topics that ROS users expect in one place (``/diagnostics``, ``/tf``, ``/rosout``) are absolute.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.feature import ROS_NAME, Feature
from bid_ros.core.task import Task


@dataclass(frozen=True)
class Qos:
    """The offered quality of service of a topic.

    Attributes:
        depth, reliability, durability, history: as in ROS.
        deadline_s: the publisher promises a message at least this often, s; None: it promises nothing.
        lifespan_s: s after which the publisher sends a message to nobody any more; None: it never expires.
    """

    depth: int = 10
    reliability: Literal["reliable", "best_effort"] = "reliable"
    durability: Literal["volatile", "transient_local"] = "volatile"
    history: Literal["keep_last", "keep_all"] = "keep_last"
    deadline_s: float | None = None
    lifespan_s: float | None = None


# A lifespan is never shorter than what a receiver takes: a late chunk is refused and counted, not lost on the way.
COMMAND_QOS: Final = Qos(1, lifespan_s=2.0)
"""Chunks: only the newest counts, and it must arrive."""
SWITCH_QOS: Final = Qos(1)
"""As chunks, but it holds until the next."""
GRANT_QOS: Final = Qos(lifespan_s=1.0)
"""A grant is valid for a second at most."""
HEARTBEAT_QOS: Final = Qos(deadline_s=1.0, lifespan_s=2.0)
"""The rarest heartbeats come twice a second. No node may be silent for longer than 2 s."""
STATE_QOS: Final = Qos()
"""Small messages at a steady rate; decisions too."""
IMAGE_QOS: Final = Qos(5, "best_effort")
"""The sensor-data profile of ROS. A reliable subscription gets nothing from it."""
SCENE_QOS: Final = Qos(2)
"""A slow reader drops old scenes."""
EVENT_QOS: Final = Qos(20, durability="transient_local")
"""A late subscriber still gets the last messages."""
INSTRUCTION_QOS: Final = Qos(1, durability="transient_local")
"""A late subscriber gets the one that holds."""
TF_QOS: Final = Qos(100)
ROSOUT_QOS: Final = Qos(1000, durability="transient_local")
TF_STATIC_QOS: Final = Qos(1, durability="transient_local")
"""The same as ROS itself offers."""

IMAGE_TYPE: Final = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE_TYPE: Final = "sensor_msgs/msg/CompressedImage"
COMPRESSED: Final = "/compressed"
"""Follows the name of a topic of images where compressed ones are recorded, as in ROS's image_transport."""
COMPRESSED_DEPTH: Final = "/compressedDepth"
"""The same of distances, from a driver."""
POSE_TYPE: Final = "geometry_msgs/msg/PoseStamped"
CHUNK_TYPE: Final = "bid_msgs/msg/ActionChunk"


@dataclass(frozen=True)
class Topic:
    """Type and offered quality of service of a topic."""

    type_name: str
    qos: Qos = STATE_QOS


IMAGES: Final = Topic(IMAGE_TYPE, IMAGE_QOS)
VIEWS: Final = Topic(COMPRESSED_IMAGE_TYPE, IMAGE_QOS)
CALIBRATIONS: Final = Topic("sensor_msgs/msg/CameraInfo", IMAGE_QOS)
BODIES: Final = Topic(POSE_TYPE)
MEASURES: Final = Topic("std_msgs/msg/String", EVENT_QOS)
SCENES: Final = Topic("bid_msgs/msg/TwinScene", SCENE_QOS)
TOPICS: Final[dict[str, Topic]] = {}
"""Every topic that is recorded for all tasks."""


def _recorded(name: str, type_name: str, qos: Qos = STATE_QOS) -> str:
    """Add a topic to those that are recorded, and return its name."""
    TOPICS[name] = Topic(type_name, qos)
    return name


def body_topic(name: str) -> str:
    """Return the topic of the true pose of a body of the twin. It is for scoring, never an observation."""
    return f"ground_truth/{name}_pose"


JOINT_STATES: Final = _recorded("joint_states", "sensor_msgs/msg/JointState")
TOOL_POSE: Final = _recorded("arm/tool_pose", POSE_TYPE)
JOINT_REFERENCE: Final = _recorded("arm/joint_reference", "sensor_msgs/msg/JointState")
ARM_STATUS: Final = _recorded("arm/status", "bid_msgs/msg/ArmStatus")
POLICY_CHUNK: Final = _recorded("policy/chunk", CHUNK_TYPE, COMMAND_QOS)
TELEOP_CHUNK: Final = _recorded("teleop/chunk", CHUNK_TYPE, COMMAND_QOS)
EPISODE_CHUNK: Final = _recorded("episode/chunk", CHUNK_TYPE, COMMAND_QOS)
SAFETY_CHUNK: Final = _recorded("safety/chunk", CHUNK_TYPE, COMMAND_QOS)
DECISION: Final = _recorded("policy/decision", "bid_msgs/msg/Decision")
INSTRUCTION: Final = _recorded("policy/instruction", "std_msgs/msg/String", INSTRUCTION_QOS)
SAFETY_STATE: Final = _recorded("safety/state", "bid_msgs/msg/SafetyState")
SAFETY_SHADOW: Final = _recorded("safety/shadow", "std_msgs/msg/String")
EPISODE_EVENT: Final = _recorded("episode/event", "bid_msgs/msg/EpisodeEvent", EVENT_QOS)
EPISODE_NOTE: Final = _recorded("episode/note", "std_msgs/msg/String")
TELEOP_SWITCH: Final = _recorded("teleop/switch", "std_msgs/msg/Bool", SWITCH_QOS)
GRANT: Final = _recorded("grant", "bid_msgs/msg/Grant", GRANT_QOS)
HEARTBEAT: Final = _recorded("heartbeat", "bid_msgs/msg/Heartbeat", HEARTBEAT_QOS)
ROSOUT: Final = _recorded("/rosout", "rcl_interfaces/msg/Log", ROSOUT_QOS)
DIAGNOSTICS: Final = _recorded("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")
PARAMETER_EVENTS: Final = "/parameter_events"
"""Changes of parameters, which every node of ROS publishes."""
TF: Final = _recorded("/tf", "tf2_msgs/msg/TFMessage", TF_QOS)
TF_STATIC: Final = _recorded("/tf_static", "tf2_msgs/msg/TFMessage", TF_STATIC_QOS)

TWIN_SCENE: Final = "twin/scene"
MARKERS: Final = "monitor/markers"
OVERLAY: Final = "monitor/overlay"
ROBOT_DESCRIPTION: Final = "robot_description"

CALIBRATION_POSE: Final = "calibration/pose"
"""Where ``bid calibrate --drive`` wants the tool, for the device ``poses``."""
MEASURED_LIMITS: Final = "calibration/limits"
"""What ``bid calibrate limits`` has measured so far, as JSON, for those who watch."""

ARM_RESET: Final = "arm/reset"
SAFETY_RESET: Final = "safety/reset"
TWIN_RESET: Final = "twin/reset"
TWIN_CABLE: Final = "twin/cable"
TWIN_EMERGENCY_STOP: Final = "twin/emergency_stop"
TWIN_HARMS: Final = {"cable": TWIN_CABLE, "emergency_stop": TWIN_EMERGENCY_STOP}
"""Services that do to a twin what a person does to a robot: pull its cable out, press its emergency stop."""
EPISODE_START: Final = "episode/start"
EPISODE_OUTCOME: Final = "episode/outcome"
EPISODE_DISCARD: Final = "episode/discard"
EPISODE_UNDO: Final = "episode/undo"

RECORDED_DECISION: Final = "recorded/decision"
"""Decisions of a recording, in a replay: each asks for the same again."""
REPLAY_DECIDED: Final = "replay/decided"
"""The policy has answered the recorded decision with this stamp; frame_id says how many it has decided so far."""
CLOCK: Final = "clock"
"""Simulated time of a replay. The nodes of a replay listen here instead of on ``/clock``."""
REPLAY_QOS: Final = Qos(100)
"""Nothing may be lost: the next message waits."""

LONGEST_NAMESPACE: Final = 100  # ROS allows 245 for a namespace and a topic together

FEATURE_TOPICS: Final = dict.fromkeys(
    ("tool_position", "tool_rotation", "gripper_width", "joint_positions"), ARM_STATUS
)
"""The topic of each observed vector. Images come from :func:`camera_topic`."""

OLDER_TOPICS: Final = {"tool_position": TOOL_POSE, "tool_rotation": TOOL_POSE, "joint_positions": JOINT_STATES}
"""The same in bags of an earlier version, whose arm status says less."""


def check_namespace(namespace: str) -> str:
    """Return a namespace with a leading slash, as ROS needs it; empty for the root.

    Raises:
        BidError: it is not a valid namespace.
    """
    name = namespace.removeprefix("/")
    if name and (len(name) > LONGEST_NAMESPACE or not re.fullmatch(ROS_NAME, name, re.ASCII)):
        raise BidError(
            f"namespace is '{namespace}'; valid are up to {LONGEST_NAMESPACE} letters, digits and _, "
            "in words that begin with no digit and are joined by /"
        )
    return f"/{name}" if name else ""


def chunk_topic(source: str) -> str:
    """Return the topic of the chunks of a source of motion: policy, teleop or episode."""
    return f"{source}/chunk"


def camera_topic(name: str) -> str:
    """Return the image topic of a camera: rgb8, already resized. The cameras of one pair share the stamp."""
    return f"camera/{name}/image"


def camera_full_topic(name: str) -> str:
    """Return the topic of the whole images of a camera that is a device: rgb8, published while somebody listens."""
    return f"camera/{name}/full"


def camera_view_topic(name: str) -> str:
    """Return the topic of a camera's pictures for a person: larger than the images, published while somebody listens.

    They are for the eye alone: nothing decides on them, and nobody records them.
    """
    return f"camera/{name}/view{COMPRESSED}"


def source_topic(address: str) -> Topic:
    """Return what a camera driver publishes on a topic, by the name that image_transport gives to compressed images."""
    packed = address.endswith((COMPRESSED, COMPRESSED_DEPTH))
    return Topic(COMPRESSED_IMAGE_TYPE, IMAGE_QOS) if packed else IMAGES


def optical_frame(camera: str) -> str:
    """Return the name of a camera's optical frame, which its images are in (REP 103)."""
    return f"{camera}_optical_frame"


def camera_info_topic(name: str) -> str:
    """Return the topic of a camera's calibration: one message for each image."""
    return f"camera/{name}/camera_info"


def feature_topic(feature: Feature, older: bool = False) -> str:
    """Return the topic that delivers an observation feature.

    Args:
        feature: of the task.
        older: the topic in a bag whose arm status says neither pose nor joints.

    Raises:
        TaskError: no topic is known for a vector of this name.
    """
    if feature.kind == "image":
        return camera_topic(feature.name)
    if feature.kind == "vector":
        return feature.topic
    if feature.name not in FEATURE_TOPICS:
        raise TaskError(f"no topic delivers observation '{feature.name}'; valid are {', '.join(FEATURE_TOPICS)}")
    return (OLDER_TOPICS if older else {}).get(feature.name, FEATURE_TOPICS[feature.name])


def recorded_topics(task: Task, bodies: Iterable[str] = ()) -> dict[str, Topic]:
    """Return every topic that is recorded for ``task``, its cameras first.

    Args:
        task: with cameras and vectors.
        bodies: names of those whose true pose the twin publishes.

    Raises:
        TaskError: a vector names a topic that has another type, or that is also named with or without its slash.
    """
    images = {camera_topic(camera.name): IMAGES for camera in task.cameras}
    calibrations = {camera_info_topic(camera.name): CALIBRATIONS for camera in task.cameras}
    topics = images | calibrations | TOPICS | {body_topic(name): BODIES for name in bodies}
    for feature in task.observation:
        if feature.kind == "vector":
            _add_vector(topics, feature)
    return topics


def _add_vector(topics: dict[str, Topic], feature: Feature) -> None:
    """Add the topic of a vector, unless it is there."""
    # A best-effort subscription receives from every publisher. The queue holds 0.2 s, as that of the arm's states.
    offered = Qos(max(10, round(0.2 * feature.rate_hz)), "best_effort")
    known = topics.setdefault(feature.topic, Topic(feature.type, offered)).type_name
    if known != feature.type:
        raise TaskError(f"observation '{feature.name}' has type '{feature.type}'; valid on {feature.topic} is {known}")
    # In the root namespace both are one topic.
    same = feature.topic[1:] if feature.topic.startswith("/") else f"/{feature.topic}"
    if same in topics:
        raise TaskError(f"observation '{feature.name}' has topic '{feature.topic}'; valid is '{same}', as elsewhere")

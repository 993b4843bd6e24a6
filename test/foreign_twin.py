"""A bag of the ROS twin as somebody else's recorder has it: other names, ROS's messages alone, poses only on /tf."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from bid_ros.core.poses import pose_arrays
from bid_ros.core.stamps import stamp_ns
from bid_ros.recording.definitions import Encoder
from bid_ros.recording.episodes import END, START
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter

SECOND: Final = 1_000_000_000
WIDEST: Final = 0.085  # m, of a Robotiq 2F-85
SHUT: Final = 0.8  # rad of its knuckle when it is closed
KNUCKLE: Final = "robotiq_85_left_knuckle_joint"
COPIED: Final = {
    "/camera/third_person/image": "/lab/front/image_raw",
    "/camera/wrist/image": "/lab/hand/image_raw",
    "/joint_states": "/lab/joint_states",
}
MADE: Final = {
    "/lab/tcp": "geometry_msgs/msg/PoseStamped",
    "/lab/tcp_goal": "geometry_msgs/msg/PoseStamped",
    "/lab/gripper_goal": "std_msgs/msg/Float64",
    "/lab/recording": "std_msgs/msg/Bool",
    "/lab/judged": "std_msgs/msg/Bool",
    "/tf": "tf2_msgs/msg/TFMessage",
    "/tf_static": "tf2_msgs/msg/TFMessage",
}
PLACES: Final[dict[str, Any]] = {
    "observation": {
        "third_person": "/lab/front/image_raw",
        "wrist": "/lab/hand/image_raw",
        "tool_position": "/lab/tcp",
        "tool_rotation": "/lab/tcp",
        "gripper_width": f"/lab/joint_states[{KNUCKLE}]",
    },
    "action": {
        "tool_position": "/lab/tcp_goal",
        "tool_rotation": "/lab/tcp_goal",
        "gripper_width": "/lab/gripper_goal",
    },
    "episodes": {"topic": "/lab/recording"},
    "success": {"topic": "/lab/judged"},
}
UNIT: Final = {"gripper_width": f"0 to {SHUT}"}
# The base hangs turned on the foot of the arm, the tool on the flange.
BASE: Final = (np.array([0.0, 0.0, 0.1]), Rotation.from_euler("z", 180, degrees=True))
TOOL: Final = (np.array([0.0, 0.05, 0.12]), Rotation.from_euler("xyz", [10, 20, 30], degrees=True))
Pose = tuple[np.ndarray, Rotation]


def write_twin_bag(path: Path, golden: Path) -> Path:
    """Write a bag of the twin of a UR through ROS again, without ``arm/status`` and without events of episodes."""
    with BagReader(golden) as reader, BagWriter(path) as writer:
        kinds = {**{name: reader.topics[own] for own, name in COPIED.items()}, **MADE}
        encoders = {kind: Encoder(kind) for kind in set(kinds.values())}
        for topic, kind in kinds.items():
            writer.add_topic(topic, encoders[kind].definition)
        rows = [(item.stamp_ns, COPIED[item.topic], item.data) for item in reader.raw(COPIED)]
        rows += [(at, topic, encoders[MADE[topic]].encode(values)) for at, topic, values in _made(reader)]
        for at, topic, data in sorted(rows, key=lambda row: row[0]):
            while not writer.write(topic, at, data):
                writer.flush()
    return path


def _made(reader: BagReader) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield time of receipt, topic and values of what a lab's own nodes would say."""
    begin, _ = reader.span_ns
    fixed = [_transform(begin, "foot", "base", BASE), _transform(begin, "flange", "tool0", TOOL)]
    yield begin, "/tf_static", {"transforms": fixed}
    for number, item in enumerate(reader.messages(["arm/status"])):
        status, at = item.message, stamp_ns(item.message)
        yield item.stamp_ns, "/lab/tcp", _posed(at, status.tool)
        goal_ns = status.reference_stamp.sec * SECOND + status.reference_stamp.nanosec
        yield item.stamp_ns, "/lab/tcp_goal", _posed(goal_ns, status.reference)
        if np.isfinite(status.reference_gripper):
            yield item.stamp_ns, "/lab/gripper_goal", {"data": SHUT * (1 - status.reference_gripper / WIDEST)}
        # The upper arm says where it is more often than the flange, and at other times.
        later = at + 5_000_000
        yield item.stamp_ns, "/tf", {"transforms": [_transform(later, "foot", "arm", _arm(later))]}
        if number % 2 == 0:
            place, turn = pose_arrays(status.tool)
            flange = _after(_inverse(_arm(at)), _after(BASE, _after((place, Rotation.from_quat(turn)), _inverse(TOOL))))
            yield item.stamp_ns, "/tf", {"transforms": [_transform(at, "arm", "flange", flange)]}
    for item in reader.messages(["episode/event"]):
        if item.message.kind in (START, END):
            yield item.stamp_ns, "/lab/recording", {"data": item.message.kind == START}
        if item.message.kind == END:
            yield item.stamp_ns, "/lab/judged", {"data": item.message.success}


def _arm(at_ns: int) -> Pose:
    """Where the upper arm is: somewhere that changes."""
    swing = 0.5 * np.sin(at_ns % (100 * SECOND) / SECOND)
    return np.array([0.1 * swing, 0.2, 0.3]), Rotation.from_euler("zx", [swing, 0.3])


def _after(first: Pose, second: Pose) -> Pose:
    return first[1].apply(second[0]) + first[0], first[1] * second[1]


def _inverse(pose: Pose) -> Pose:
    return -pose[1].inv().apply(pose[0]), pose[1].inv()


def _head(at_ns: int, frame: str) -> dict[str, Any]:
    return {"stamp": {"sec": at_ns // SECOND, "nanosec": at_ns % SECOND}, "frame_id": frame}


def _named(names: str, values: Any) -> dict[str, float]:
    return dict(zip(names, map(float, values), strict=True))


def _posed(at_ns: int, pose: Any) -> dict[str, Any]:
    place, turn = pose_arrays(pose)
    value = {"position": _named("xyz", place), "orientation": _named("xyzw", turn)}
    return {"header": _head(at_ns, "base"), "pose": value}


def _transform(at_ns: int, frame: str, child: str, pose: Pose) -> dict[str, Any]:
    value = {"translation": _named("xyz", pose[0]), "rotation": _named("xyzw", pose[1].as_quat())}
    return {"header": _head(at_ns, frame), "child_frame_id": child, "transform": value}

"""Bags of an arm that is nobody's here: other names, the messages of ROS alone, no ``arm/status``, no episode events.

The arm follows what it is told ``LAG_S`` later. It is told to move from 1 s to 4 s, and again from 7 s to 10 s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from bid_ros.recording.definitions import Encoder
from bid_ros.recording.writer import BagWriter

START: Final = 1_700_000_000_000_000_000
SECOND: Final = 1_000_000_000
LAG_S: Final = 0.12
LENGTH_S: Final = 11.0
MOVES: Final = ((1.0, 4.0), (7.0, 10.0))
JOINTS: Final = ("elbow", "base", "finger_l", "wrist", "finger_r")  # sorted by nobody
CAMERA: Final = "/cam_left/image_raw/compressed"
TYPES: Final = {
    CAMERA: "sensor_msgs/msg/CompressedImage",
    "/my_arm/joint_states": "sensor_msgs/msg/JointState",
    "/my_arm/ee_pose": "geometry_msgs/msg/PoseStamped",
    "/my_arm/target_pose": "geometry_msgs/msg/PoseStamped",
    "/my_arm/target_twist": "geometry_msgs/msg/TwistStamped",
    "/my_arm/goal": "trajectory_msgs/msg/JointTrajectory",
    "/my_arm/joint_targets": "std_msgs/msg/Float64MultiArray",
    "/my_gripper/command": "std_msgs/msg/Float64MultiArray",
    "/rec": "std_msgs/msg/Bool",
    "/phase": "std_msgs/msg/String",
    "/judged": "std_msgs/msg/Bool",
    "/clicks": "geometry_msgs/msg/PointStamped",
}
TASK: Final[dict[str, Any]] = {
    "name": "foreign",
    "robot": "franka",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 4,
    "observation": [
        {"name": "wrist", "kind": "image", "shape": [16, 16, 3]},
        {"name": "tool_position", "kind": "position"},
        {"name": "gripper_width", "kind": "gripper"},
    ],
    "action": [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}],
    "limits": {"workspace_min": [0.0, -1.0, 0.0], "workspace_max": [1.0, 1.0, 1.0]},
}
TOPICS: Final[dict[str, Any]] = {
    "observation": {
        "wrist": "/cam_left/image_raw",
        "tool_position": "/my_arm/ee_pose",
        "gripper_width": "/my_arm/joint_states[finger_l, finger_r]",
    },
    "action": {"tool_position": "/my_arm/target_pose", "gripper_width": "/my_gripper/command[0]"},
    "episodes": {"topic": "/rec"},
}


def told_at(seconds: float) -> tuple[np.ndarray, float, np.ndarray]:
    """Position (3,) m, opening m and joints (3,) rad that the arm is told at a time."""
    moved = sum(np.clip(seconds - begin, 0, end - begin) for begin, end in MOVES)
    swing = sum(np.sin(3 * np.clip(seconds - begin, 0, end - begin)) for begin, end in MOVES)
    place = np.array([0.4 + 0.05 * moved, 0.05 * swing, 0.3])
    return place, 0.08 if seconds % 6 < 2.5 else 0.02, np.array([0.2 * moved, 0.3 * swing, -0.5])


def _stamped(seconds: float, off_s: float = 0.0) -> dict[str, Any]:
    sec, nanosec = divmod(START + round((seconds + off_s) * SECOND), SECOND)
    return {"stamp": {"sec": sec, "nanosec": nanosec}, "frame_id": "my_base"}


def _xyz(values: Any) -> dict[str, float]:
    return {axis: float(value) for axis, value in zip("xyz", values, strict=True)}


def write_bag(path: Path, off_s: float = 0.0) -> Path:
    """Record the arm.

    Args:
        path: folder of the bag.
        off_s: of the clock of the stamps from that of the recorder.
    """
    encoders = {kind: Encoder(kind) for kind in set(TYPES.values())}
    with BagWriter(path) as writer:
        for topic, kind in TYPES.items():
            writer.add_topic(topic, encoders[kind].definition)
        for seconds, topic, values in sorted(_messages(off_s), key=lambda item: item[0]):
            data = encoders[TYPES[topic]].encode(values)
            assert writer.write(topic, START + round(seconds * SECOND), data)
    return path


def _messages(off_s: float) -> list[tuple[float, str, dict[str, Any]]]:
    found: list[tuple[float, str, dict[str, Any]]] = []
    for number in range(round(LENGTH_S * 50)):
        at = number / 50
        (place, width, joints), (told, wanted, goal) = told_at(at - LAG_S), told_at(at)
        head = _stamped(at, off_s)
        turn = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}
        position = [joints[1], joints[0], width / 2, joints[2], width / 2]
        found.append((at + 0.002, "/my_arm/joint_states", {"header": head, "name": JOINTS, "position": position}))
        pose = {"position": _xyz(place), "orientation": turn}
        found.append((at + 0.003, "/my_arm/ee_pose", {"header": head, "pose": pose}))
        if any(begin <= at <= end for begin, end in MOVES):
            pose = {"position": _xyz(told), "orientation": turn}
            found.append((at + 0.001, "/my_arm/target_pose", {"header": head, "pose": pose}))
            found.append((at + 0.001, "/my_arm/joint_targets", {"data": np.rad2deg(goal)}))
            found.append((at + 0.001, "/my_gripper/command", {"data": [wanted, 40.0]}))
            speed = (told_at(at + 0.001)[0] - told) * 1000
            found.append((at + 0.001, "/my_arm/target_twist", {"header": head, "twist": {"linear": _xyz(speed)}}))
            later = told_at(at + 0.1)[2][[2, 1, 0]]
            points = [{"positions": later, "time_from_start": {"nanosec": 100_000_000}}]
            value = {"header": head, "joint_names": ["wrist", "elbow", "base"], "points": points}
            found.append((at + 0.001, "/my_arm/goal", value))
    for number in range(round(LENGTH_S * 15)):
        at = number / 15 + 0.011
        picture = np.full((24, 32, 3), int(20 * at), np.uint8)
        data = np.frombuffer(cv2.imencode(".png", picture)[1].tobytes(), np.uint8)
        value = {"header": _stamped(at, off_s), "format": "rgb8; png compressed bgr8", "data": data}
        found.append((at + 0.04, CAMERA, value))
    for number, (begin, end) in enumerate(MOVES):
        found += [(begin - 0.5, "/rec", {"data": 1}), (begin, "/rec", {"data": 1}), (end + 0.5, "/rec", {"data": 0})]
        found += [(begin - 0.5, "/phase", {"data": "start"}), (end + 0.5, "/phase", {"data": "stop"})]
        found += [(end + 0.6, "/judged", {"data": int(number == 0)})]
    return [*found, (5.0, "/clicks", {"header": _stamped(5.0, off_s)})]

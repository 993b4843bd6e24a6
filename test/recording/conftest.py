"""Recordings for the tests: real messages, serialized by ROS, as a run of the twin would send them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.task import Task, parse_task
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, IMAGE_TYPE, TOOL_POSE, TOPICS, camera_topic
from bid_ros.recording.definitions import Definition, find_definition
from bid_ros.recording.writer import BagWriter

MS = 1_000_000
CAMERAS = ("third_person", "wrist")


# What the file of the task holds.
TASK: dict[str, Any] = {
    "name": "small",
    "robot": "franka",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 8,
    "observation": [
        {"name": "third_person", "kind": "image", "shape": [6, 8, 3]},
        {"name": "wrist", "kind": "image", "shape": [6, 8, 3]},
        {"name": "tool_position", "kind": "position", "rate_hz": 50},
        {"name": "tool_rotation", "kind": "rotation_6d", "rate_hz": 50},
        {"name": "gripper_width", "kind": "gripper", "rate_hz": 50},
    ],
    "action": [
        {"name": "tool_position", "kind": "position"},
        {"name": "tool_rotation", "kind": "rotation_6d"},
        {"name": "gripper_width", "kind": "gripper"},
    ],
    "limits": {"workspace_min": [0.0, -1.0, 0.0], "workspace_max": [1.0, 1.0, 1.0]},
}


@pytest.fixture
def task() -> Task:
    return parse_task(TASK)


def stamped(message: Any, stamp_ns: int, frame: str = "base") -> Any:
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, NANOSECONDS)
    message.header.frame_id = frame
    return message


def image(stamp_ns: int, camera: str, height: int = 6, width: int = 8) -> Image:
    pixels = np.random.default_rng([stamp_ns, CAMERAS.index(camera)]).integers(0, 256, (height, width, 3), np.uint8)
    message = Image(height=height, width=width, encoding="rgb8", step=3 * width, data=pixels.tobytes())
    return stamped(message, stamp_ns, camera)


def set_pose(pose: Any, position: tuple[float, float, float], turn: float) -> None:
    """Set a pose at ``position`` in m, turned by ``turn`` rad about z."""
    pose.position.x, pose.position.y, pose.position.z = position
    pose.orientation.z, pose.orientation.w = float(np.sin(turn / 2)), float(np.cos(turn / 2))


def reference_at(seconds: float) -> tuple[tuple[float, float, float], float, float]:
    """Position (m), turn (rad) and gripper (m) ``seconds`` after the start: still for 0.8 s, then steady motion."""
    moving = max(0.0, seconds - 0.8)
    return (0.4 + 0.1 * moving, 0.02 * moving, 0.3), 0.2 * moving, 0.08 if seconds > 1.65 else 0.04


def event(kind: int, stamp_ns: int, episode: int, success: bool = True, seed: int = 7) -> EpisodeEvent:
    message = EpisodeEvent(kind=kind, episode=episode, seed=seed, label="clean")
    if kind == EpisodeEvent.END:
        message.success, message.outcome = success, "success" if success else "timeout"
    return stamped(message, stamp_ns)


@dataclass
class Run:
    """Messages by topic and time of receipt; ``write`` records them."""

    items: list[tuple[int, str, Any]] = field(default_factory=list)

    def add(self, topic: str, received_ns: int, message: Any) -> None:
        self.items.append((received_ns, topic, message))

    def ordered(self) -> list[tuple[int, str, Any]]:
        return sorted(self.items, key=lambda item: item[0])

    def write(
        self,
        path: Path,
        namespace: str = "",
        about: Mapping[str, str] | None = None,
        like: Mapping[str, str] | None = None,
    ) -> Path:
        """Record the run in a namespace; ``like`` says which topic one of another name has the type of, or the type."""
        with BagWriter(path, custom_data=about) as writer:
            for topic in dict.fromkeys(topic for _, topic, _ in self.ordered()):
                add_topic(writer, topic, namespace, like)
            for received, topic, message in self.ordered():
                assert writer.write(full_name(topic, namespace), received, serialize_message(message))
        return path


@cache
def definition(type_name: str) -> Definition:
    return find_definition(type_name)


def full_name(topic: str, namespace: str = "") -> str:
    return topic if topic.startswith("/") else f"{namespace}/{topic}"


def add_topic(writer: BagWriter, topic: str, namespace: str = "", like: Mapping[str, str] | None = None) -> None:
    name = (like or {}).get(topic, topic)
    known = TOPICS.get(name.lstrip("/"))
    found = definition(known.type_name if known else name if "/msg/" in name else IMAGE_TYPE)
    writer.add_topic(full_name(topic, namespace), found)


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The helpers of this file: test modules cannot import it."""
    return SimpleNamespace(
        Run=Run,
        TASK=TASK,
        add_topic=add_topic,
        definition=definition,
        event=event,
        image=image,
        reference_at=reference_at,
        set_pose=set_pose,
        stamped=stamped,
    )


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """Return a function that makes a run of one or more episodes of ``seconds``, the first at ``start_ns``."""

    def make(
        episodes: int = 1,
        seconds: float = 2.0,
        start_ns: int = 1_700_000_000 * NANOSECONDS,
        success: Callable[[int], bool] = lambda index: True,
        lost_frames: tuple[int, ...] = (),
    ) -> Run:
        run = Run()
        for index in range(episodes):
            add_episode(run, index, start_ns + index * 5 * NANOSECONDS, seconds, success(index), lost_frames)
        return run

    return make


def add_episode(
    run: Run, index: int, start: int, seconds: float, success: bool, lost_frames: tuple[int, ...] = ()
) -> None:
    """Add an episode with the delays of a real run: 50 Hz state 2 to 6 ms late, 10 Hz cameras 30 to 50 ms late."""
    rng = np.random.default_rng(index)
    end = start + round(seconds * NANOSECONDS)
    run.add(EPISODE_EVENT, start - 1500 * MS, event(EpisodeEvent.PREPARE, start - 1500 * MS, index))
    run.add(EPISODE_EVENT, start + MS, event(EpisodeEvent.START, start, index, seed=100 + index))
    run.add(EPISODE_EVENT, end + MS, event(EpisodeEvent.END, end, index, success, seed=100 + index))
    for stamp in range(start - 500 * MS, end + 300 * MS, 20 * MS):
        place, turn, gripper = reference_at((stamp - start) / NANOSECONDS)
        status = ArmStatus(reference_gripper=gripper, gripper_width=gripper - 0.001)
        set_pose(status.reference, place, turn)
        pose = PoseStamped()
        # The arm lags behind its reference by two centimetres.
        set_pose(pose.pose, (place[0] - 0.02, place[1], place[2]), turn)
        status.tool = pose.pose
        run.add(ARM_STATUS, stamp + int(rng.integers(2 * MS, 6 * MS)), stamped(status, stamp))
        run.add(TOOL_POSE, stamp + int(rng.integers(2 * MS, 6 * MS)), stamped(pose, stamp))
    for number, stamp in enumerate(range(start + 7 * MS, end + 300 * MS, 100 * MS)):
        for camera in CAMERAS:
            if number not in lost_frames:
                received = stamp + int(rng.integers(30 * MS, 50 * MS))
                run.add(camera_topic(camera), received, image(stamp, camera))

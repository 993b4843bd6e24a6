"""Measures what the recorder loses under load: cameras and states of another process, for some time.

``recorder-load --seconds 600`` publishes 2 cameras of 256x256 px at 30 Hz and 4 states at 100 Hz;
``--scale 2`` twice as many messages a second. It prints what was sent, recorded and lost by topic, the recorder's CPU,
memory and largest backlog, and what the recorder said itself.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image, JointState

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.cameras.image import encode_image
from bid_ros.core import topics
from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.nodes.base import COMMAND_PRIORITY
from bid_ros.nodes.ros_messages import time_message
from bid_ros.nodes.topics import profile
from bid_ros.recording.reader import BagReader
from bid_ros.system.middleware import middleware_environment
from bid_ros.system.priority import raise_priority

SIZE, FRAMES_HZ, STATES_HZ = 256, 30, 100
STATES = {
    topics.ARM_STATUS: ArmStatus(joint_positions=[0.0] * 7),
    topics.JOINT_STATES: JointState(name=[f"joint{n}" for n in range(7)], position=[0.0] * 7, velocity=[0.0] * 7),
    topics.TOOL_POSE: PoseStamped(),
    topics.SAFETY_STATE: SafetyState(),
}


def main() -> int:
    """Run the measurement; status 1 if a message was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--scale", type=float, default=1.0, help="times the messages a second")
    parser.add_argument("--codec", default="jpeg:95", help="raw, png, jpeg or jpeg:QUALITY")
    parser.add_argument("--out", default="", help="keep the bag in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bid_load_") as folder:
        result = measure(Path(options.out or folder), options.seconds, options.scale, options.codec)
    print(json.dumps(result, indent=1))
    return int(result["lost"] > 0)


def measure(folder: Path, seconds: float, scale: float, codec: str) -> dict[str, Any]:
    """Record into ``folder`` for some time; return what was lost, and what it cost."""
    task = write_task(folder)
    rclpy.init()
    node = rclpy.create_node("load")
    said: list[dict[str, str]] = []
    node.create_subscription(DiagnosticArray, topics.DIAGNOSTICS, lambda item: take(item, said), 10)
    events = node.create_publisher(EpisodeEvent, topics.EPISODE_EVENT, profile(topics.EVENT_QOS))
    command = [sys.executable, "-m", "bid_ros.nodes", "recorder_node", "--ros-args", "-r", "__node:=recorder"]
    for name, value in {"task": task, "episodes": folder / "episodes", "image_codec": codec}.items():
        command += ["-p", f"{name}:={value}"]
    raise_priority(COMMAND_PRIORITY, every_thread=True)  # this process stands for hardware
    # A session of its own, as that of every node of a system.
    with subprocess.Popen(command, start_new_session=True, preexec_fn=lambda: os.nice(COMMAND_PRIORITY)) as recorder:
        load = Load(node, task, scale)
        while not load.matched() or not events.get_subscription_count() or not said:
            rclpy.spin_once(node, timeout_sec=0.1)
        begun, before = time.monotonic(), cpu_seconds(recorder.pid)
        events.publish(EpisodeEvent(kind=EpisodeEvent.START))
        while not said[-1]["summary"].startswith("recording"):
            rclpy.spin_once(node, timeout_sec=0.1)
        thread = threading.Thread(target=load.run, args=(seconds,))
        thread.start()
        while thread.is_alive():
            rclpy.spin_once(node, timeout_sec=0.2)
        used, lasted = cpu_seconds(recorder.pid) - before, time.monotonic() - begun
        until = time.monotonic() + 2.0
        while time.monotonic() < until:  # until the counters of the last second have come
            rclpy.spin_once(node, timeout_sec=0.1)
        memory = peak_mb(recorder.pid)
        events.publish(EpisodeEvent(kind=EpisodeEvent.END))
        recorder.terminate()
        node.destroy_node()
        recorder.wait(60)
    rclpy.try_shutdown()
    recorded = counted(folder / "episodes" / "0000", load.sent)
    lost = {topic: sent - recorded[topic] for topic, sent in load.sent.items() if sent != recorded[topic]}
    size = sum(file.stat().st_size for file in (folder / "episodes" / "0000").iterdir())
    return {
        "seconds": round(seconds),
        "codec": codec,
        "scale": scale,
        "sent": dict(load.sent),
        "messages_per_s": round(sum(load.sent.values()) / lasted),
        "late_ms": round(load.late_s * 1e3, 1),
        "lost": sum(lost.values()),
        "lost_by_topic": lost,
        "cpu_percent": round(100 * used / lasted, 1),
        "memory_mb": memory,
        "largest_backlog_mb": max(float(item["waiting MB"]) for item in said),
        "bag_mb": round(size / 1e6, 1),
        "recorder_says": {name: said[-1][name] for name in ("summary", "dropped", "lost_on_the_way")},
    }


def write_task(folder: Path) -> Path:
    """Write the task of two cameras of 256x256 px; return its path."""
    content = yaml.safe_load(share("config", "franka_place", "task.yaml").read_text())
    for item in content["observation"]:
        if item["kind"] == "image":
            item["shape"] = [SIZE, SIZE, 3]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.yaml").write_text(yaml.safe_dump(content))
    return folder / "task.yaml"


class Load:
    """Publishes images and states on an absolute schedule."""

    def __init__(self, node: Any, task: Path, scale: float) -> None:
        rng = np.random.default_rng(0)
        soft = cv2.resize(rng.integers(0, 256, (24, 24, 3), np.uint8), (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)
        # With the noise of a camera, which decides what a lossless codec costs.
        noisy = [np.clip(soft + rng.normal(0, 2, soft.shape), 0, 255).astype(np.uint8) for _ in range(4)]
        pictures = [Image(**encode_image(picture)) for picture in noisy]
        self.sent: Counter[str] = Counter()
        self.late_s = 0.0
        self._parts = []
        for camera in load_task(task).cameras:
            name = topics.camera_topic(camera.name)
            publisher = node.create_publisher(Image, name, profile(topics.IMAGE_QOS))
            self._parts.append((name, publisher, pictures, FRAMES_HZ * scale))
        for name, message in STATES.items():
            publisher = node.create_publisher(type(message), name, profile(topics.TOPICS[name].qos))
            self._parts.append((name, publisher, [message], STATES_HZ * scale))

    def matched(self) -> bool:
        """Whether the recorder listens to every topic."""
        return all(publisher.get_subscription_count() for _, publisher, _, _ in self._parts)

    def run(self, seconds: float) -> None:
        """Publish for some time."""
        begun = time.monotonic()
        due = [(begun + 0.001 * number, number) for number in range(len(self._parts))]
        while (at := min(due))[0] < begun + seconds:
            now = time.monotonic()
            if now < at[0]:
                time.sleep(at[0] - now)
            self.late_s = max(self.late_s, now - at[0])
            name, publisher, messages, rate_hz = self._parts[at[1]]
            message = messages[self.sent[name] % len(messages)]
            message.header.stamp = time_message(time.time_ns())
            publisher.publish(serialize_message(message))
            self.sent[name] += 1
            due[at[1]] = (at[0] + 1 / rate_hz, at[1])


def take(message: DiagnosticArray, said: list[dict[str, str]]) -> None:
    """Keep what the recorder says."""
    for status in message.status:
        if status.name.endswith("recorder"):
            said.append({"summary": status.message, **{item.key: item.value for item in status.values}})
            assert "waiting MB" in said[-1], "another recorder runs in this ROS domain: choose another ROS_DOMAIN_ID"


def counted(bag: Path, wanted: Counter[str]) -> Counter[str]:
    """Return how many different messages of each topic a bag holds, by the stamps of their headers."""
    with BagReader(bag) as reader:
        stamps: dict[str, set[int | None]] = {topic: set() for topic in wanted}
        for item in reader.raw(list(wanted)):
            stamps[item.topic].add(item.header_ns)
        return Counter({topic: len(found) for topic, found in stamps.items()})


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used, s."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peak_mb(process: int) -> float:
    """Return the most memory that a process has held, MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1e3, 1)


if __name__ == "__main__":
    os.environ |= {"ROS_DOMAIN_ID": os.environ.get("ROS_DOMAIN_ID", "77"), **middleware_environment()}
    sys.exit(main())

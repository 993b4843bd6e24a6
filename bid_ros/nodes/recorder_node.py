"""Recorder node: every topic of the system into one rosbag2 MCAP bag."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rclpy.qos import QoSDurabilityPolicy, QoSProfile

from bid_ros.nodes.base import BidNode, Parameter, run_node
from bid_ros.nodes.qos import EVENT
from bid_ros.recording.definitions import message_definition
from bid_ros.recording.topics import recorded_topics
from bid_ros.recording.writer import BagWriter
from bid_ros.task import load_task

PARAMETERS = (
    Parameter("task", "", "path of the task file, which names the cameras"),
    Parameter("bag", "", "folder of the bag to write; must not exist"),
)


class RecorderNode(BidNode):
    """Subscribes to serialised messages, so recording costs no decoding."""

    def __init__(self) -> None:
        super().__init__("recorder", PARAMETERS)
        task = load_task(self.value("task"))
        self._writer = BagWriter(Path(self.value("bag")))
        for topic, type_name in recorded_topics(task).items():
            self._record(topic, type_name)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Messages written and dropped."""
        return self._writer.dropped == 0, "recording", {"written": self._writer.written, "dropped": self._writer.dropped}

    def close(self) -> None:
        """Write the index and close the bag."""
        self._writer.close()

    def _record(self, topic: str, type_name: str) -> None:
        package, _, name = type_name.split("/")
        message_type = getattr(importlib.import_module(f"{package}.msg"), name)
        profile = EVENT if topic == "/episode/event" else QoSProfile(depth=20)
        transient = profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL
        self._writer.add_topic(topic, type_name, message_definition(type_name), transient_local=transient)
        self.create_subscription(message_type, topic, self._handler(topic), profile, raw=True)

    def _handler(self, topic: str) -> Callable[[Any], None]:
        def handle(data: bytes) -> None:
            self._writer.write(topic, self.now_ns(), data)

        return handle


def main() -> None:
    """Run the recorder node."""
    sys.exit(run_node(RecorderNode))


if __name__ == "__main__":
    main()

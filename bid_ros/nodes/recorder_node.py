"""Recorder node: every topic of the system into one rosbag2 MCAP bag."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rclpy.qos import QoSProfile

from bid_ros.errors import RecordingError
from bid_ros.nodes.base import BidNode, Parameter, run_node
from bid_ros.nodes.qos import EVENT
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.topics import LATCHED, Qos, recorded_topics
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
        self._problem = ""
        self._writer = BagWriter(Path(self.value("bag")))
        for topic, type_name in recorded_topics(task).items():
            self._record(topic, type_name)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Messages written and dropped."""
        written, dropped = self._writer.counts, self._writer.dropped
        healthy = not dropped and not self._problem
        return healthy, self._problem or "recording", {"written": sum(written.values()), "dropped": dict(dropped)}

    def close(self) -> None:
        """Write the index and close the bag."""
        self._writer.close()

    def _record(self, topic: str, type_name: str) -> None:
        package, _, name = type_name.split("/")
        message_type = getattr(importlib.import_module(f"{package}.msg"), name)
        profile = EVENT if topic in LATCHED else QoSProfile(depth=20)
        definition = find_definition(type_name)
        qos = Qos(durability="transient_local") if topic in LATCHED else Qos()
        self._writer.add_topic(topic, type_name, definition.text, definition.type_hash, qos)
        self.create_subscription(message_type, topic, self._handler(topic), profile, raw=True)

    def _handler(self, topic: str) -> Callable[[Any], None]:
        def handle(data: bytes) -> None:
            try:
                self._writer.write(topic, self.now_ns(), data)
            except RecordingError as error:
                self._problem = str(error)
                self.get_logger().error(self._problem, throttle_duration_sec=5.0)

        return handle


def main() -> None:
    """Run the recorder node."""
    sys.exit(run_node(RecorderNode))


if __name__ == "__main__":
    main()

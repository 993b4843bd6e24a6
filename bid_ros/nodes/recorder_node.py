"""Recorder node: records every topic of the system into one rosbag2 MCAP bag."""

import json
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import load_task
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, recorded_topics
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.pulse import RARE_S
from bid_ros.nodes.topics import message_type
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter

PARAMETERS = (
    Parameter("task", "", "path of the task file, which names the cameras"),
    Parameter("bag", "", "folder of the bag to write; must not exist"),
)
NO_TIME = "recording begins with simulated time, but no /clock has arrived"


class RecorderNode(BidNode):
    """Subscribes to serialised messages, so recording needs no decoding. It also records the end of episode and arm."""

    outlives = (EPISODE_EVENT, ARM_STATUS)
    heartbeat_s = RARE_S

    def __init__(self) -> None:
        super().__init__("recorder", PARAMETERS, sim_time=True)
        self._problem = ""
        self._writer: BagWriter | None = None
        self._topics = recorded_topics(load_task(self.value("task")))
        self._definitions = {name: find_definition(topic.type_name) for name, topic in self._topics.items()}
        self._types = {name: message_type(topic.type_name) for name, topic in self._topics.items()}

    def begin(self) -> None:
        """Create the bag and record."""
        self._writer = BagWriter(Path(self.value("bag")), custom_data=self._about(self._topics))
        for name, topic in self._topics.items():
            self._writer.add_topic(self.resolve_topic_name(name), self._definitions[name], topic.qos)
        # Only now, and all at once: until this node spins, the queues hold the messages.
        for name, topic in self._topics.items():
            take = partial(self._take, self._writer, self.resolve_topic_name(name))
            self.listen(name, take, topic, patient=True, raw=True)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return the messages written and dropped."""
        assert self._writer is not None, "only called while the node runs"
        written, dropped = self._writer.counts, self._writer.dropped
        healthy = not dropped and not self._problem
        return healthy, self._problem or "recording", {"written": sum(written.values()), "dropped": dict(dropped)}

    def close(self) -> None:
        """Write the index and close the bag."""
        if self._writer is not None:
            self._writer.close()

    def _about(self, names: Iterable[str]) -> dict[str, str]:
        """Return what a reader needs to find the topics: the namespace, and remapped names."""
        namespace = self.get_namespace()
        resolved = {name: self.resolve_topic_name(name) for name in names}
        remapped = {name: full for name, full in resolved.items() if full != str(PurePosixPath(namespace, name))}
        about = {"namespace": namespace, "frame_prefix": self.frame_prefix}
        return {**about, **({"remapped": json.dumps(remapped)} if remapped else {})}

    def _take(self, writer: BagWriter, topic: str, data: bytes) -> None:
        now = self.now_ns()
        # Simulated time has a pace of its own, so nobody knows what it was when the message arrived.
        age = 0 if self.get_clock().ros_time_is_active else time.monotonic_ns() - self.arrived_ns()
        self._problem = "" if now else NO_TIME
        if not now:
            return
        try:
            writer.write(topic, now - age, data)
        except RecordingError as error:
            self._problem = str(error)
            self.get_logger().error(self._problem, throttle_duration_sec=5.0)


main = RecorderNode.main

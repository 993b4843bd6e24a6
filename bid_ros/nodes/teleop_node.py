"""Teleoperation node with the scripted teleoperator, which drives the arm like a person: through the safety node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial

import numpy as np
import scipy.interpolate  # noqa: F401  # a third of a second, in which the first motion would hold the node up
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import EpisodeEvent
from bid_ros.nodes.base import BidNode, Parameter, run_node
from bid_ros.nodes.convert import chunk_to_message, pose_arrays
from bid_ros.nodes.qos import COMMAND, EVENT, STATE
from bid_ros.task import load_task
from bid_ros.teleop import PlannedTeleoperator, find_demonstrator

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("rate_hz", 20.0, "chunks a second", 5.0, 100.0),
    Parameter("steps", 10, "actions in a chunk", 2, 100),
    Parameter("dt_s", 0.05, "time between two actions of a chunk in s", 0.01, 0.5),
)


class TeleopNode(BidNode):
    """At the start of an episode looks where everything is, plans once, and then drives."""

    def __init__(self) -> None:
        super().__init__("teleop", PARAMETERS)
        self._task = load_task(self.value("task"))
        self._demonstrator = find_demonstrator(self._task.name)
        self._operator: PlannedTeleoperator | None = None
        self._bodies: dict[str, NDArray[np.float64]] = {}
        self._tool: NDArray[np.float64] | None = None
        self._chunks = self.create_publisher(ChunkMessage, "/teleop/chunk", COMMAND)
        self.create_subscription(PoseStamped, "/arm/tool_pose", self._on_tool, STATE)
        for name in self._demonstrator.bodies:
            topic = f"/ground_truth/{name}_pose"
            self.create_subscription(PoseStamped, topic, partial(self._on_body, name), STATE)
        self.create_subscription(EpisodeEvent, "/episode/event", self._on_event, EVENT)
        self.create_timer(1.0 / self.value("rate_hz"), self._publish)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Whether an episode is being driven."""
        return True, "driving" if self._operator else "waiting for an episode", {}

    def _on_tool(self, message: PoseStamped) -> None:
        self._tool = pose_arrays(message.pose)[0]

    def _on_body(self, name: str, message: PoseStamped) -> None:
        self._bodies[name] = pose_arrays(message.pose)[0]

    def _on_event(self, event: EpisodeEvent) -> None:
        self._operator = None
        if event.kind != EpisodeEvent.START:
            return
        missing = [name for name in self._demonstrator.bodies if name not in self._bodies]
        if self._tool is None or missing:
            what = ", ".join(missing if self._tool is not None else ["tool", *missing])
            self.get_logger().error(f"no pose of {what} has arrived, so the episode is not driven")
            return
        self._operator = self._demonstrator.plan(event.label, int(event.seed), self._tool, self._bodies, self.now_ns())

    def _publish(self) -> None:
        if self._operator is None:
            return
        chunk = self._operator.chunk_at(self.now_ns(), self.value("steps"), round(self.value("dt_s") * 1e9))
        self._chunks.publish(chunk_to_message(chunk, self._task))


def main() -> None:
    """Run the teleoperation node."""
    sys.exit(run_node(TeleopNode))


if __name__ == "__main__":
    main()

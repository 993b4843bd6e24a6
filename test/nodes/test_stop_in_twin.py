"""A policy leaves the workspace in a twin: safety stops it, the run resets the twin, and the next episode succeeds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from nodes.test_episode_node import START_S
from qos import COMMAND, EVENT, STATE
from std_srvs.srv import SetBool

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, EpisodeEvent, Heartbeat
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.nodes.ros_messages import chunk_to_message, pose_arrays
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments

pytestmark = pytest.mark.long

OUTSIDE = 5.0  # m, in x
STEPS = 15


class LeavingPolicy:
    """Plays camera and policy: it asks for a place outside the workspace in the first episode, then it stays."""

    def __init__(self, bench: Any, name: str, out: Any) -> None:
        self.events: list[EpisodeEvent] = []
        self.status = ArmStatus()
        self._sequence = 0
        specs = describe(find_system(name), RunArguments(bundle="none", record=False, episodes=2, out=str(out)))
        parameters = {spec.name: dict(spec.parameters) for spec in specs}
        self._task = load_task(parameters["arm"]["task"])
        node = bench.node
        self._chunks = node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        node.create_subscription(EpisodeEvent, "/episode/event", self.events.append, EVENT)
        node.create_subscription(ArmStatus, "/arm/status", self._on_status, STATE)
        self.outcome = node.create_client(SetBool, "/episode/outcome")
        node.create_timer(0.05, self._beat)
        node.create_timer(0.1, self._decide)
        for role in ("arm", "safety"):
            parameters[role]["heartbeat_deadline_s"] = 2.0  # the computer of a test stutters, which is tested elsewhere
        parameters["episode"]["nodes"] = ["arm", "safety", "twin"]
        for role in ("twin", "safety", "arm", "episode"):
            bench.start(role, parameters[role])

    def count(self, kind: int) -> int:
        return [event.kind for event in self.events].count(kind)

    def _on_status(self, message: ArmStatus) -> None:
        self.status = message

    def _beat(self) -> None:
        for role in ("camera", "policy"):
            self._beats.publish(Heartbeat(node=role))

    def _decide(self) -> None:
        if not self.events or self.events[-1].kind != EpisodeEvent.START:
            return
        position, quaternion = pose_arrays(self.status.tool)
        row = [*position, *matrix_to_6d(matrix_from_quaternion(quaternion)), self.status.gripper_width]
        if self.count(EpisodeEvent.START) == 1:
            row[0] = OUTSIDE
        stamp = self.status.header.stamp.sec * 1_000_000_000 + self.status.header.stamp.nanosec
        chunk = ActionChunk(stamp, self._task.dt_ns, np.tile(row, (STEPS, 1)), source="policy", sequence=self._sequence)
        self._sequence += 1
        self._chunks.publish(chunk_to_message(chunk, self._task, ""))


@pytest.mark.parametrize("name", ["ur5_pick", "franka_place"])
def test_the_episode_after_a_stop_succeeds_in_the_same_run(bench, tmp_path, name):
    out = tmp_path / "out"
    policy = LeavingPolicy(bench, name, out)
    assert bench.until(lambda: policy.count(EpisodeEvent.END) == 1, 2 * START_S)
    stopped = policy.events[-1]
    assert (stopped.outcome_class, stopped.outcome_code) == (EpisodeEvent.SAFETY, "workspace"), stopped.outcome
    assert bench.until(lambda: policy.count(EpisodeEvent.START) == 2, START_S)
    moves = lambda: policy.status.mode == ArmStatus.TRACKING and policy.status.source == "policy"  # noqa: E731
    assert bench.until(moves, START_S), "after the reset the arm follows the policy"
    policy.outcome.call_async(SetBool.Request(data=True))
    assert bench.until(lambda: bench.processes["episode"].poll() is not None, START_S)
    status, output = bench.finish("episode")
    run = json.loads((out / "run.json").read_text())
    assert (status, run["ended"]) == (0, None), output
    assert [item["outcome_code"] for item in run["results"]] == ["workspace", "success"]
    assert (run["counted"], run["successes"], run["safety_stops"]) == (2, 1, 1)
    (stop,) = run["stops"]
    assert (stop["rule"], stop["reset_by"]) == ("workspace", "run") and stop["reset_s"] > 0
    assert f"x is {OUTSIDE:.3f} m" in stop["outcome"]

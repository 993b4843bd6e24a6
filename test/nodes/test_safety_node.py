"""The safety node as a real process: what it forwards, what it refuses, how it latches and resets."""

from __future__ import annotations

import time

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import Heartbeat, SafetyState
from bid_ros.chunk import ActionChunk
from bid_ros.nodes.convert import chunk_to_message, pose_stamped
from bid_ros.nodes.qos import COMMAND, STATE
from bid_ros.task import load_task

DOWN = [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]


class Harness:
    """Heartbeats, chunks and what comes back."""

    def __init__(self, bench, root):
        self.bench = bench
        self.task = load_task(root / "config" / "franka_place.yaml")
        self.forwarded: list[ChunkMessage] = []
        self.states: list[SafetyState] = []
        self.alive = {"camera", "policy", "arm"}
        node = bench.node
        self._chunks = node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        self._poses = node.create_publisher(PoseStamped, "/arm/tool_pose", STATE)
        self.tool_known = True
        node.create_subscription(ChunkMessage, "/safety/chunk", self.forwarded.append, COMMAND)
        node.create_subscription(SafetyState, "/safety/state", self.states.append, STATE)
        node.create_timer(0.03, self.beat)
        self.reset_client = node.create_client(Trigger, "/safety/reset")
        bench.start("safety", {"task": str(root / "config" / "franka_place.yaml"), "required": sorted(self.alive)})

    def beat(self):
        for name in self.alive:
            self._beats.publish(Heartbeat(node=name))
        if self.tool_known:
            self._poses.publish(pose_stamped(time.time_ns(), "base", [0.5, 0.0, 0.3], [1.0, 0.0, 0.0, 0.0]))

    def running(self) -> bool:
        return bool(self.states) and self.states[-1].state == SafetyState.RUNNING

    def stopped(self) -> bool:
        return bool(self.states) and self.states[-1].state == SafetyState.STOPPED

    def send(self, change=None, stamp_offset_ns: int = 0):
        actions = np.tile([0.5, 0.0, 0.3, *DOWN, 0.04], (15, 1))
        chunk = ActionChunk(time.time_ns() + stamp_offset_ns, self.task.dt_ns, actions)
        message = chunk_to_message(chunk, self.task)
        if change is not None:
            change(message)
        self._chunks.publish(message)

    def send_until(self, condition, change=None, stamp_offset_ns: int = 0) -> bool:
        return self.bench.until(condition, 10.0, each=lambda: self.send(change, stamp_offset_ns))

    def reset(self) -> Trigger.Response:
        future = self.reset_client.call_async(Trigger.Request())
        assert self.bench.until(future.done)
        return future.result()


@pytest.fixture
def harness(bench, root):
    harness = Harness(bench, root)
    assert bench.until(harness.running), "the safety node did not come up"
    return harness


def test_good_chunks_pass_unchanged(harness):
    assert harness.send_until(lambda: harness.forwarded)
    assert harness.forwarded[0].actions[:3].tolist() == [0.5, 0.0, 0.3]
    assert harness.running()


def not_finite(message):
    message.actions[3] = float("nan")


def outside(message):
    for row in range(15):
        message.actions[10 * row] = 0.95


def wrong_shape(message):
    message.steps = 14


@pytest.mark.parametrize(
    ("change", "trigger"), [(not_finite, "finite"), (outside, "workspace"), (wrong_shape, "shape")]
)
def test_a_bad_chunk_is_refused_and_latches_with_its_reason(harness, change, trigger):
    assert harness.send_until(harness.stopped, change)
    state = harness.states[-1]
    assert state.trigger == trigger
    assert len(state.reason) > 20
    harness.forwarded.clear()
    harness.send()
    refused = state.refused
    assert harness.send_until(lambda: harness.states[-1].refused >= refused and len(harness.states) > 5)
    assert not harness.forwarded, "a good chunk passed a latched stop"
    assert harness.reset().success
    assert harness.send_until(lambda: harness.forwarded)


@pytest.mark.parametrize("offset_s", [-30.0, 30.0])
def test_chunks_from_the_past_and_far_future_are_refused_and_latch_in_the_end(harness, offset_s):
    assert harness.send_until(harness.stopped, stamp_offset_ns=round(offset_s * 1e9))
    assert harness.states[-1].trigger == "time"
    assert not harness.forwarded


def test_nothing_passes_while_the_tool_pose_is_unknown(harness):
    harness.tool_known = False
    assert harness.send_until(harness.stopped)
    assert harness.states[-1].trigger == "measurement"


@pytest.mark.parametrize("silent", ["camera", "policy", "arm"])
def test_a_missing_heartbeat_latches_and_reset_waits_for_its_return(harness, silent):
    harness.alive.remove(silent)
    assert harness.bench.until(harness.stopped)
    assert harness.states[-1].trigger == f"heartbeat:{silent}"
    assert harness.states[-1].limit == pytest.approx(0.3)
    response = harness.reset()
    assert not response.success and silent in response.message
    harness.alive.add(silent)
    assert harness.bench.until(lambda: harness.reset().success)
    assert harness.send_until(lambda: harness.forwarded)


def test_a_bad_task_file_ends_the_node_with_one_sentence(bench, tmp_path):
    task = tmp_path / "task.yaml"
    task.write_text("name: x\nspeed_limit: 3\n")
    bench.start("safety", {"task": str(task)})
    status, output = bench.finish("safety")
    assert status == 2
    assert "error: task file" in output and "Traceback" not in output

"""The teleoperation node as a real process: it looks where everything is, then drives."""

from __future__ import annotations

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from qos import EVENT, EVERY_COMMAND, EVERY_STATE, STATE

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.stamps import stamp_ns
from bid_ros.nodes.ros_messages import pose_message, pose_stamped
from bid_ros.system.folder import find_system
from bid_ros.tasks.registry import find_demonstrator

LIMIT_S = 30.0
PLACES = {"cup": [0.50, -0.10, 0.0], "saucer": [0.48, 0.20, 0.0]}
DOWN = [1.0, 0.0, 0.0, 0.0]
START = [0.48, -0.05, 0.30]
WIDTH = 0.043


class Harness:
    """Plays arm, twin and episode runner."""

    def __init__(self, bench, root, task: str, bodies, **parameters):
        self.bench = bench
        self.chunks: list[ChunkMessage] = []
        self.summary = ""
        node = bench.node
        self._tool = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._bodies = {
            name: node.create_publisher(PoseStamped, f"/ground_truth/{name}_pose", STATE) for name in bodies
        }
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        node.create_subscription(ChunkMessage, "/teleop/chunk", self.chunks.append, EVERY_COMMAND)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVERY_STATE)
        node.create_timer(0.05, self._publish)
        bench.grant("teleop")
        bench.start("teleop", {"task": str(root / "config" / task / "task.yaml"), **parameters})
        publishers = [self._tool, *self._bodies.values(), self.events]
        assert bench.until(lambda: all(item.get_subscription_count() for item in publishers), LIMIT_S)

    def _on_diagnostics(self, message):
        self.summary = message.status[0].message

    def _publish(self):
        self._tool.publish(ArmStatus(tool=pose_message(START, DOWN), gripper_width=WIDTH))
        for name, publisher in self._bodies.items():
            publisher.publish(pose_stamped(time.time_ns(), "base", PLACES[name], [0.0, 0.0, 0.0, 1.0]))

    def event(self, kind: int):
        self.events.publish(EpisodeEvent(kind=kind, label="clean", seed=1))

    def begin(self):
        """Start episodes until one is driven: what lies in the scene may not have arrived before the first."""
        end = time.monotonic() + LIMIT_S
        while not self.chunks and time.monotonic() < end:
            self.event(EpisodeEvent.START)
            self.bench.until(lambda: self.chunks, 1.0)
        assert self.chunks

    def rows(self) -> np.ndarray:
        chunk = self.chunks[-1]
        return np.array(chunk.actions).reshape(chunk.steps, chunk.dims)


@pytest.mark.parametrize("task", ["franka_place", "ur5_pick"])
def test_drives_from_the_start_of_an_episode_to_its_end(bench, root, task):
    harness = Harness(bench, root, task, find_demonstrator(find_system(task).task).bodies)
    assert bench.until(lambda: harness.summary == "waiting for an episode", LIMIT_S)
    assert not harness.chunks
    harness.begin()
    assert bench.until(lambda: len(harness.chunks) > 20, LIMIT_S)
    np.testing.assert_allclose(np.array(harness.chunks[0].actions)[:3], START, atol=0.01)
    way = harness.rows()[-1, :2] - np.array(START[:2])
    assert way @ (np.array(PLACES["cup"][:2]) - np.array(START[:2])) > 0, "it does not go to the cup first"
    harness.bench.stop_granting()
    quiet = lambda: time.time_ns() - stamp_ns(harness.chunks[-1]) > 1_000_000_000  # noqa: E731
    assert bench.until(quiet, LIMIT_S), "it drives on though nobody is in charge"
    harness.bench.grant("teleop")
    count = len(harness.chunks)
    assert bench.until(lambda: len(harness.chunks) > count, LIMIT_S)
    harness.event(EpisodeEvent.END)
    assert bench.until(lambda: harness.summary == "waiting for an episode", LIMIT_S)


@pytest.mark.parametrize(("prepared", "width"), [(True, 0.0), (False, WIDTH)])
def test_where_nothing_was_prepared_the_gripper_begins_as_it_is(bench, root, prepared, width):
    """Nobody holds the switch yet, so the gripper must not close on a hand."""
    harness = Harness(bench, root, "franka_place", (), device="joy", prepared=prepared)
    harness.begin()
    np.testing.assert_allclose(harness.rows()[:, -1], width)


def test_without_the_saucer_nothing_is_driven_and_the_log_says_why(bench, root):
    harness = Harness(bench, root, "ur5_pick", ("cup",))
    assert bench.until(lambda: harness.summary == "waiting for an episode", LIMIT_S)
    harness.event(EpisodeEvent.START)
    harness.summary = ""
    assert bench.until(lambda: harness.summary, LIMIT_S)
    assert not harness.chunks
    bench.processes["teleop"].terminate()
    _, output = bench.finish("teleop")
    assert "no pose of saucer has arrived, so the episode is not driven" in output

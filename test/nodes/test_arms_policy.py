"""The policy node of two arms as a real process: one decision, a part for each arm, and only while both are granted."""

import re
import time

import numpy as np
import pytest
from qos import EVERY_COMMAND, EVERY_STATE, IMAGE, STATE
from sensor_msgs.msg import Image
from tiny_bundle import make_tiny_bundle

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Decision, Grant, Heartbeat
from bid_ros.cameras.image import encode_image
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import load_task
from bid_ros.nodes.ros_messages import duration_message, header, pose_message, time_message

ARMS = {"left": 0.1, "right": -0.1}  # m, where the tools stand
START_S = 60.0
LATER_NS = 3_000_000  # by which the frames of the right arm's cameras are the later ones


class Pair:
    """Plays cameras, arms and episode node of both arms."""

    def __init__(self, bench, root, folder):
        self.bench, self.granted, self.frames = bench, set(), 0
        self.chunks, self.decisions = {arm: [] for arm in ARMS}, {arm: [] for arm in ARMS}
        self.beats: set[str] = set()
        file, node = folder / "task.yaml", bench.node
        text = (root / "config" / "franka_place" / "task.yaml").read_text()  # an untrained policy turns as it likes
        text = re.sub(r"max_(turn_rate|turn_acceleration): .*", r"max_\1: 1.0e+4", text)
        file.write_text(re.sub(r"max_tilt: .*", "max_tilt: 3.2\n  max_gripper_rate: 100.0", text))
        bundle = str(make_tiny_bundle(folder / "bundle", load_task(file)))
        self._ends = {
            arm: (
                [
                    node.create_publisher(Image, f"/{arm}/camera/{name}/image", IMAGE)
                    for name in ("third_person", "wrist")
                ],
                node.create_publisher(ArmStatus, f"/{arm}/arm/status", STATE),
                node.create_publisher(Grant, f"/{arm}/grant", STATE),
            )
            for arm in ARMS
        }
        for arm in ARMS:
            node.create_subscription(ChunkMessage, f"/{arm}/policy/chunk", self.chunks[arm].append, EVERY_COMMAND)
            node.create_subscription(Decision, f"/{arm}/policy/decision", self.decisions[arm].append, EVERY_STATE)
            node.create_subscription(
                Heartbeat, f"/{arm}/heartbeat", lambda beat: self.beats.add(beat.robot), EVERY_STATE
            )
        node.create_timer(0.1, self._look)
        node.create_timer(0.02, self._tell)
        shared = {"name": "two", "arms": list(ARMS), "tasks": [str(file)] * 2, "arm_configs": ["", ""], "twin": True}
        given = {"bundles": [bundle] * 2, "samples": 4, "runtime": "onnx", "max_late_ms": 90.0, "budget_ms": 0.0}
        bench.start("arms_policy", {**shared, **given})

    def _look(self):
        self.frames += 1
        stamp = time.time_ns()
        for number, (images, _, _) in enumerate(self._ends.values()):
            for publisher in images:
                message = Image(**encode_image(np.full((96, 96, 3), 120, np.uint8)))
                message.header.stamp = time_message(stamp + number * LATER_NS)
                publisher.publish(message)

    def _tell(self):
        for (arm, y), (_, statuses, grants) in zip(ARMS.items(), self._ends.values(), strict=True):
            tool = pose_message([0.5, y, 0.3], [1.0, 0.0, 0.0, 0.0])
            told = header(time.time_ns(), f"{arm}/base")
            status = ArmStatus(header=told, robot=arm, tool=tool, gripper_width=0.04, joint_positions=[0.1] * 7)
            statuses.publish(status)
            sources = ["policy"] if arm in self.granted else []
            grants.publish(Grant(robot=arm, granter="bench", sources=sources, duration=duration_message(500_000_000)))

    def until_frames(self, count):
        until = self.frames + count
        assert self.bench.until(lambda: self.frames >= until)

    def nothing_new(self):
        self.until_frames(7)  # what was under way and what a grant still allows
        before = {arm: len(chunks) for arm, chunks in self.chunks.items()}
        self.until_frames(5)
        assert before == {arm: len(chunks) for arm, chunks in self.chunks.items()}


@pytest.fixture
def pair(bench, root, tmp_path):
    return Pair(bench, root, tmp_path)


def test_one_decision_has_a_chunk_for_each_arm_and_only_while_both_are_granted(pair):
    assert pair.bench.until(lambda: pair.beats == set(ARMS), START_S), "each arm hears its policy node"
    pair.granted = {"left"}
    pair.nothing_new()
    assert not pair.chunks["left"]
    pair.granted = set(ARMS)
    assert pair.bench.until(lambda: min(map(len, (*pair.chunks.values(), *pair.decisions.values()))) >= 5, START_S)
    pair.granted = {"right"}
    pair.nothing_new()
    told = {arm: {(chunk.sequence, stamp_ns(chunk)) for chunk in chunks} for arm, chunks in pair.chunks.items()}
    assert told["left"] == told["right"] and len(told["left"]) == len(pair.chunks["left"])
    for arm, y in ARMS.items():
        chunk, decision = pair.chunks[arm][-1], pair.decisions[arm][-1]
        assert (chunk.robot, chunk.header.frame_id, chunk.dims) == (arm, f"{arm}/base", 10)
        assert chunk.features == ["tool_position", "tool_rotation", "gripper_width"]
        assert chunk.actions[1] == pytest.approx(y, abs=0.1)
        assert decision.dims == 10 and "wrist" in decision.observed
    numbers = [[(item.sequence, item.missed) for item in decisions] for decisions in pair.decisions.values()]
    assert numbers[0] == numbers[1]

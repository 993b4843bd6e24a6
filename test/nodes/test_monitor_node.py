"""The monitor node as a real process: what RViz gets of a decision, and the overlay on a camera image."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from qos import COMMAND, EVENT, EVERY_STATE, IMAGE, STATE
from sensor_msgs.msg import Image
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from bid_msgs.msg import ActionChunk, ArmStatus, Decision, SafetyState
from bid_ros.cameras.image import decode_image, encode_image
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import load_task
from bid_ros.nodes.ros_messages import header, time_message
from bid_ros.robots.franka.model import HOME_Q

START_S = 60.0
SAMPLES = 3
GREY = 120


class Harness:
    """Plays policy and camera, and takes what RViz would."""

    def __init__(self, bench, root, robot_model: bool = False) -> None:
        self.bench = bench
        self.markers: dict[str, Marker] = {}
        self.overlays: list[Image] = []
        self.task = load_task(root / "config" / "franka_place" / "task.yaml")
        node = bench.node
        self._decisions = node.create_publisher(Decision, "/policy/decision", STATE)
        self._images = node.create_publisher(Image, "/camera/third_person/image", IMAGE)
        self.arm = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._chunks = node.create_publisher(ActionChunk, "/safety/chunk", COMMAND)
        self.safety = node.create_publisher(SafetyState, "/safety/state", STATE)
        self._moved = 0
        node.create_subscription(MarkerArray, "/monitor/markers", self._on_markers, EVERY_STATE)
        node.create_subscription(Image, "/monitor/overlay", self.overlays.append, IMAGE)
        node.create_timer(0.1, self._publish)
        folder = root / "config" / "franka_place"
        files = {"task": str(folder / "task.yaml"), "cameras": str(folder / "cameras.yaml")}
        bench.start("monitor", {**files, "twin": True, "robot_model": robot_model})

    def _on_markers(self, message: MarkerArray) -> None:
        self.markers |= {marker.ns: marker for marker in message.markers}

    def _publish(self) -> None:
        stamp, task = time_message(time.time_ns()), self.task
        chunks = np.zeros((SAMPLES, task.horizon, task.action_dim), np.float32)
        chunks[..., :3] = (0.5, 0.0, 0.2)
        chunks[..., 0] += np.linspace(0.0, 0.1, task.horizon) * (1.0 + np.arange(SAMPLES)[:, None])
        decision = Decision(
            decoder="bid",
            current_step=task.observation_steps - 1,
            steps=task.horizon,
            dims=task.action_dim,
            samples=SAMPLES,
            strong=chunks.ravel().tolist(),
            selected=chunks[1].ravel().tolist(),
            selected_index=1,
            kept=[True, True, False],
            total=[3.0, 1.0, float("nan")],
        )
        decision.header.stamp, decision.header.frame_id = stamp, task.base_frame
        self._decisions.publish(decision)
        status = ArmStatus(header=header(time.time_ns(), task.base_frame), joint_positions=list(HOME_Q))
        self._moved += 1
        status.tool.position.x = 0.01 * self._moved
        self.arm.publish(status)
        actions = chunks[0].astype(float)
        self._chunks.publish(
            ActionChunk(source="teleop", steps=len(actions), dims=task.action_dim, actions=actions.ravel().tolist())
        )
        image = Image(**encode_image(np.full((*task.cameras[0].shape[:2], 3), GREY, np.uint8)))
        image.header.stamp = stamp
        self._images.publish(image)


@pytest.fixture
def harness(bench, root) -> Harness:
    return Harness(bench, root)


def test_the_candidates_of_a_decision_are_lines_in_the_base_frame(harness):
    assert harness.bench.until(lambda: {"selected", "workspace"} <= harness.markers.keys(), START_S)
    found, rows = harness.markers, harness.task.horizon - harness.task.observation_steps + 1
    ends = 2 * (rows - 1)  # of the lines of one of several chunks
    assert {name: len(found[name].points) for name in ("candidates", "trimmed", "selected", "weak", "previous")} == {
        "candidates": 2 * ends,
        "trimmed": rows,
        "selected": rows,
        "weak": 0,
        "previous": 0,
    }
    assert {marker.header.frame_id for marker in found.values()} == {harness.task.base_frame}
    last = found["selected"].points[-1]
    assert (last.x, last.y, last.z) == pytest.approx((0.7, 0.0, 0.2), abs=1e-6)
    worst, best = found["candidates"].colors[0], found["candidates"].colors[-1]
    assert worst.b > worst.g and best.g > best.b, "green is the smallest loss, blue the largest"
    assert found["candidates"].lifetime.sec == 1, "a decision that nobody renews goes away"


def test_the_workspace_has_the_limits_of_the_task(harness):
    assert harness.bench.until(lambda: "workspace" in harness.markers, START_S)
    edges = [(end.x, end.y, end.z) for end in harness.markers["workspace"].points]
    limits = harness.task.limits
    assert len(edges) == 24
    assert np.min(edges, axis=0) == pytest.approx(limits.workspace_min)
    assert np.max(edges, axis=0) == pytest.approx(limits.workspace_max)


def test_the_limits_of_the_task_and_those_that_are_measured_are_shown(harness):
    said = harness.bench.node.create_publisher(String, "/calibration/limits", EVENT)
    said.publish(String(data='{"start": {"low": [0.4, -0.1, 0.3], "high": [0.5, 0.1, 0.4]}}'))
    assert harness.bench.until(lambda: {"start", "keep_out/table", "new/start"} <= harness.markers.keys(), START_S)
    table, new = (harness.markers[name].points for name in ("keep_out/table", "new/start"))
    assert {end.z for end in table} == {0.0} and len(new) == 24
    assert max(end.z for end in new) == 0.4 and harness.markers["new/table"].points == []
    said.publish(String(data="{}"))
    assert harness.bench.until(lambda: not harness.markers["new/start"].points)


def test_the_trail_grows_and_the_chunk_of_a_person_is_shown(harness):
    assert harness.bench.until(lambda: {"trail", "forwarded"} <= harness.markers.keys(), START_S)
    before = len(harness.markers["trail"].points)
    assert harness.bench.until(lambda: len(harness.markers["trail"].points) > before + 3)
    assert len(harness.markers["forwarded"].points) == harness.task.horizon


def test_a_stop_turns_the_workspace_red_and_says_why(harness):
    assert harness.bench.until(lambda: "safety" in harness.markers, START_S)

    def stopped() -> None:
        harness.safety.publish(SafetyState(state=SafetyState.STOPPED, reason="speed is 0.7 m/s; valid is up to 0.5"))

    assert harness.bench.until(lambda: harness.markers["safety"].text.startswith("STOPPED: speed"), each=stopped)
    assert harness.bench.until(lambda: harness.markers["workspace"].color.r > harness.markers["workspace"].color.b)


def test_the_overlay_draws_the_decision_on_the_camera_image(harness):
    assert harness.bench.until(lambda: len(harness.overlays) > 3, START_S)
    picture = harness.overlays[-1]
    pixels = decode_image(picture, "overlay")
    assert stamp_ns(picture) > 0
    assert (pixels != GREY).any() and (pixels == GREY).any(), "the image is empty or hidden"


def test_the_robot_is_described_and_its_links_follow_the_arm(bench, root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    described, transforms = [], {}

    def keep(message: TFMessage) -> None:
        transforms.update({item.child_frame_id: item for item in message.transforms})

    bench.node.create_subscription(String, "/robot_description", described.append, EVENT)
    bench.node.create_subscription(TFMessage, "/tf", keep, EVERY_STATE)
    harness = Harness(bench, root, robot_model=True)
    assert bench.until(lambda: described and transforms, START_S)
    description = ET.fromstring(described[0].data)
    links = {link.get("name") for link in description.findall("link")}
    assert links == set(transforms), "RViz finds the place of every link"
    assert all(Path(mesh.get("filename").removeprefix("file://")).exists() for mesh in description.iter("mesh"))
    assert transforms["outline/base"].header.frame_id == "base"
    elbow = transforms["outline/fr3_link4"]
    assert elbow.header.frame_id == "outline/fr3_link3" and stamp_ns(elbow) > 0
    assert np.hypot(elbow.transform.rotation.x, elbow.transform.rotation.w) < 1, "its joint is turned"
    now_ns, hour_ns = time.time_ns(), 3600 * 10**9
    for hours, joints in ((1, HOME_Q[:6]), (2, HOME_Q)):  # first what is no posture of this robot
        harness.arm.publish(ArmStatus(header=header(now_ns + hours * hour_ns, "base"), joint_positions=list(joints)))
    assert bench.until(lambda: stamp_ns(transforms["outline/base"]) == now_ns + 2 * hour_ns, 10)
    assert bench.until(lambda: stamp_ns(transforms["outline/base"]) < now_ns + hour_ns, 10), "the clock was set back"

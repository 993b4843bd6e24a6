"""The camera node as a real process: what it pairs and republishes, and what it says about a camera that fails."""

from __future__ import annotations

import threading
import time

import mujoco
import numpy as np
import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Image

from bid_msgs.msg import Heartbeat, TwinScene
from bid_ros.cameras import decode_image, encode_image, resize_crop
from bid_ros.nodes.camera_node import CameraNode
from bid_ros.nodes.convert import time_message
from bid_ros.nodes.qos import IMAGE, STATE
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.scene import render_model
from bid_ros.stamps import stamp_ns

START_S = 40.0
NAMES = ("third_person", "wrist")


def picture(width: int, height: int) -> np.ndarray:
    """A gradient, so that a wrong crop, order or channel shows."""
    across, down = np.meshgrid(np.linspace(0, 250, width), np.linspace(0, 250, height))
    return np.stack([across, down, 255 - across], axis=-1).astype(np.uint8)


class Harness:
    """Plays the camera drivers and keeps what the node makes of them."""

    def __init__(self, bench, root, tmp_path, cameras, **parameters):
        self.bench = bench
        self.images: dict[str, list[Image]] = {name: [] for name in NAMES}
        self.beats = 0
        self.diagnosis = ""
        self.pictures = {"third_person": picture(160, 120), "wrist": picture(96, 96)}
        self.encodings: dict[str, str] = {}
        node = bench.node
        self._drivers = {name: node.create_publisher(Image, f"/driver/{name}", IMAGE) for name in NAMES}
        for name in NAMES:
            node.create_subscription(Image, f"/camera/{name}/image", self.images[name].append, STATE)
        node.create_subscription(Heartbeat, "/heartbeat", self._on_beat, STATE)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, STATE)
        node.create_timer(0.1, self._publish)
        file = tmp_path / "cameras.yaml"
        file.write_text(yaml.safe_dump(cameras))
        task = str(root / "config" / "franka_place.yaml")
        bench.start("camera", {"task": task, "cameras": str(file), **parameters})

    def _on_beat(self, message):
        self.beats += message.node == "camera"

    def _on_diagnostics(self, message):
        self.diagnosis = message.status[0].message

    def _publish(self):
        stamp = time.time_ns()
        for name, image in self.pictures.items():
            message = Image(**encode_image(image))
            message.encoding = self.encodings.get(name, message.encoding)
            # Real cameras never expose at exactly the same time.
            message.header.stamp = time_message(stamp + 3_000_000 * (name == "wrist"))
            self._drivers[name].publish(message)

    def delivering(self) -> bool:
        return all(len(images) > 2 for images in self.images.values()) and self.beats > 2

    def silent(self) -> bool:
        """True once neither images nor heartbeats came for two diagnoses in a row."""
        self.diagnosis = ""
        before = self.beats, len(self.images["wrist"])
        assert self.bench.until(lambda: self.diagnosis, START_S)
        return before == (self.beats, len(self.images["wrist"]))


def topics(**third_person):
    return {
        "third_person": {"source": "topic", "address": "/driver/third_person", **third_person},
        "wrist": {"source": "topic", "address": "/driver/wrist"},
    }


def test_pairs_get_one_stamp_and_the_tasks_shape(bench, root, tmp_path):
    crop = (20, 0, 120, 120)
    harness = Harness(bench, root, tmp_path, topics(crop=list(crop)))
    assert bench.until(harness.delivering, START_S)
    stamps = {name: {stamp_ns(image) for image in harness.images[name]} for name in NAMES}
    assert len(stamps["wrist"] & stamps["third_person"]) >= 2
    assert all(len(own) == len(harness.images[name]) for name, own in stamps.items()), "a stamp was used twice"
    third, wrist = (harness.images[name][-1] for name in NAMES)
    assert (third.height, third.width, third.encoding, third.header.frame_id) == (96, 96, "rgb8", "third_person")
    np.testing.assert_array_equal(decode_image(third), resize_crop(harness.pictures["third_person"], crop, (96, 96, 3)))
    np.testing.assert_array_equal(decode_image(wrist), harness.pictures["wrist"])


def test_a_camera_that_never_publishes_is_named_and_no_heartbeat_is_sent(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, topics(), open_timeout_s=1.0)
    del harness.pictures["wrist"]
    # Until the node has found the publishers it misses both.
    assert bench.until(lambda: harness.diagnosis.startswith("no frame from wrist"), START_S), harness.diagnosis
    assert harness.beats == 0 and not harness.images["third_person"]
    harness.pictures["wrist"] = picture(96, 96)
    assert bench.until(harness.delivering, START_S), "the node did not recover when the camera came"


def test_a_camera_that_stops_is_named_and_ends_the_heartbeats(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, topics())
    assert bench.until(harness.delivering, START_S)
    del harness.pictures["third_person"]
    assert bench.until(lambda: harness.diagnosis.startswith("no frame"), START_S), harness.diagnosis
    assert "third_person" in harness.diagnosis and "wrist" not in harness.diagnosis
    assert harness.silent()


@pytest.mark.parametrize(
    ("encoding", "size", "sentence"),
    [("rgb8", (48, 64), "now delivers 48x64 px"), ("16UC1", (96, 96), "encoding '16UC1'")],
    ids=["size", "encoding"],
)
def test_another_size_or_encoding_mid_run_is_refused(bench, root, tmp_path, encoding, size, sentence):
    harness = Harness(bench, root, tmp_path, topics())
    assert bench.until(harness.delivering, START_S)
    harness.pictures["wrist"] = picture(*size)
    harness.encodings["wrist"] = encoding
    assert bench.until(lambda: sentence in harness.diagnosis, START_S), harness.diagnosis
    assert harness.silent()
    assert {(image.width, image.height) for image in harness.images["wrist"]} == {(96, 96)}
    assert bench.processes["camera"].poll() is None


def test_a_camera_file_of_other_cameras_ends_the_node_with_one_sentence(bench, root, tmp_path):
    Harness(bench, root, tmp_path, {"left": {"source": "twin"}})
    status, output = bench.finish("camera", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "third_person, wrist" in output and "Traceback" not in output


def test_the_twins_cameras_show_the_scene_that_was_published(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, {name: {"source": "twin"} for name in NAMES})
    harness.pictures.clear()
    model = render_model()
    data = mujoco.MjData(model)
    mujoco.mj_resetData(model, data)
    scene = TwinScene(
        qpos=data.qpos.tolist(), mocap_pos=data.mocap_pos.ravel().tolist(), mocap_quat=data.mocap_quat.ravel().tolist()
    )
    scenes = bench.node.create_publisher(TwinScene, "/twin/scene", IMAGE)
    sent = []

    def publish():
        scene.header.stamp = time_message(time.time_ns())
        sent.append(stamp_ns(scene))
        scenes.publish(scene)

    bench.node.create_timer(0.2, publish)
    assert bench.until(harness.delivering, START_S)
    renderer = SceneRenderer(96, 96, NAMES)
    expected = renderer.render(data.qpos, data.mocap_pos, data.mocap_quat)
    renderer.close()
    for name in NAMES:
        image = harness.images[name][-1]
        assert stamp_ns(image) in sent
        np.testing.assert_array_equal(decode_image(image), expected[name])
    assert expected["wrist"].std() > 5


def twin_cameras(root, tmp_path) -> CameraNode:
    """A node in this process whose cameras are the twin's."""
    file = tmp_path / "cameras.yaml"
    file.write_text(yaml.safe_dump({name: {"source": "twin"} for name in NAMES}))
    task = root / "config" / "franka_place.yaml"
    rclpy.init(args=["--ros-args", "-p", f"task:={task}", "-p", f"cameras:={file}"])
    return CameraNode()


@pytest.mark.parametrize("asked_to_end", [True, False])
def test_a_render_thread_that_fails_is_told_except_in_a_shutdown(root, tmp_path, ros_domain, monkeypatch, asked_to_end):
    def render(*_):
        # What a signal does in the middle of a frame: publishers and subscriptions are invalid at once.
        if asked_to_end:
            rclpy.shutdown()
        raise RuntimeError("no such context")

    raised, told = [], []
    monkeypatch.setattr(SceneRenderer, "render", render)
    monkeypatch.setattr(threading, "excepthook", lambda hook: raised.append(hook.exc_value))
    node = twin_cameras(root, tmp_path)
    monkeypatch.setattr(node, "fail", told.append)
    try:
        node._on_scene(TwinScene())
        for thread in node._threads:
            thread.join(START_S)
            assert not thread.is_alive()
    finally:
        node.close()
        node.destroy_node()
        rclpy.try_shutdown()
    if asked_to_end:
        assert not raised and not told
    else:
        assert [str(error) for error in raised] == ["no such context"]
        assert told == ["the thread of render ended: no such context"]

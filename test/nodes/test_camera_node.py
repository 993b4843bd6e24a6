"""The camera node as a real process: what it pairs and republishes, and what it says about a camera that fails."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import cv2
import mujoco
import numpy as np
import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from qos import EVERY_STATE, IMAGE, SCENES, STATIC_TRANSFORMS
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import Heartbeat, TwinScene
from bid_ros.cameras.image import decode_image, encode_image, resize_crop
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import camera_view_topic
from bid_ros.nodes.camera_node import CameraNode
from bid_ros.nodes.ros_messages import time_message
from bid_ros.robots.franka.model import scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.placing.world import SCENE

START_S = 40.0
NAMES = ("third_person", "wrist")


def picture(width: int, height: int) -> np.ndarray:
    """A gradient, so that a wrong crop, order or channel shows."""
    across, down = np.meshgrid(np.linspace(0, 250, width), np.linspace(0, 250, height))
    return np.stack([across, down, 255 - across], axis=-1).astype(np.uint8)


class Harness:
    """Plays the camera drivers and keeps what the node makes of them."""

    def __init__(self, bench, root, tmp_path, cameras, *arguments, namespace="", **parameters):
        self.bench = bench
        self.images: dict[str, list[Image]] = {name: [] for name in NAMES}
        self.beats = 0
        self.diagnosis = ""
        self.pictures = {"third_person": picture(160, 120), "wrist": picture(96, 96)}
        self.encodings: dict[str, str] = {}
        self.ahead_ns: dict[str, int] = {}
        node = bench.node
        self._drivers = {name: node.create_publisher(Image, f"/driver/{name}", IMAGE) for name in NAMES}
        for name in NAMES:
            node.create_subscription(Image, f"{namespace}/camera/{name}/image", self.images[name].append, IMAGE)
        self.views: list[CompressedImage] = []
        node.create_subscription(CompressedImage, camera_view_topic("third_person"), self.views.append, IMAGE)
        node.create_subscription(Heartbeat, f"{namespace}/heartbeat", self._on_beat, EVERY_STATE)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVERY_STATE)
        node.create_timer(0.1, self._publish)
        file = tmp_path / "cameras.yaml"
        file.write_text(yaml.safe_dump(cameras))
        task = str(root / "config" / "franka_place" / "task.yaml")
        bench.start("camera", {"task": task, "cameras": str(file), **parameters}, *arguments)

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
            message.header.stamp = time_message(stamp + 3_000_000 * (name == "wrist") + self.ahead_ns.get(name, 0))
            self._drivers[name].publish(message)

    def delivering(self) -> bool:
        return all(len(images) > 2 for images in self.images.values()) and self.beats > 2

    def silent(self) -> bool:
        """True once neither images nor heartbeats came between two diagnoses.

        The first one may come at once, before the heartbeats have ended, and the second soon after it.
        """
        before = 0, 0
        for _ in range(3):
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
    assert (third.height, third.width, third.encoding, third.header.frame_id) == (
        96,
        96,
        "rgb8",
        "third_person_optical_frame",
    )
    np.testing.assert_array_equal(decode_image(third), resize_crop(harness.pictures["third_person"], crop, (96, 96, 3)))
    np.testing.assert_array_equal(decode_image(wrist), harness.pictures["wrist"])
    assert bench.until(lambda: harness.views, START_S)
    view, cropped = decode_image(harness.views[-1]).astype(int), harness.pictures["third_person"][0:120, 20:140]
    assert view.shape == cropped.shape and np.abs(view - cropped).mean() < 3, "the crop for a person, not resized"


def test_compressed_distances_of_a_driver_become_whole_millimetres(bench, root, tmp_path):
    content = yaml.safe_load((root / "config" / "franka_place" / "task.yaml").read_text())
    content["observation"][:2] = [{"name": "front", "kind": "image", "shape": [96, 96, 1], "depth": [0.1, 2.0]}]
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(content))
    address = "/driver/front/compressedDepth"
    (tmp_path / "cameras.yaml").write_text(yaml.safe_dump({"front": {"source": "topic", "address": address}}))
    whole = np.arange(96 * 96, dtype=np.uint16).reshape(96, 96, 1)
    data = bytes(12) + cv2.imencode(".png", whole)[1].tobytes()
    driver, found = bench.node.create_publisher(CompressedImage, address, IMAGE), []

    def publish():
        message = CompressedImage(format="16UC1; compressedDepth png", data=data)
        message.header.stamp = time_message(time.time_ns())
        driver.publish(message)

    bench.node.create_timer(0.1, publish)
    bench.node.create_subscription(Image, "/camera/front/image", found.append, IMAGE)
    files = {name: str(tmp_path / f"{name}.yaml") for name in ("task", "cameras")}
    bench.start("camera", files)
    assert bench.until(lambda: len(found) > 2, START_S)
    assert (found[-1].encoding, found[-1].step, found[-1].header.frame_id) == ("16UC1", 192, "front_optical_frame")
    np.testing.assert_array_equal(np.frombuffer(found[-1].data, "<u2").reshape(96, 96, 1), whole)


def test_calibration_and_pose_of_a_camera_are_published_in_the_frames_of_its_system(bench, root, tmp_path):
    turned = [0.0, 1.0, 0.0, 0.0]  # looks straight down
    cameras = topics(position=[0.4, 0.1, 0.9], quaternion=turned, fovy=90.0)
    cameras["wrist"] |= {"frame": "tool", "position": [0.1, 0.0, -0.05], "quaternion": [0.0, 0.0, 0.0, 1.0]}
    harness = Harness(bench, root, tmp_path, cameras, "-r", "__ns:=/left", namespace="/left")
    infos: dict[str, list[CameraInfo]] = {name: [] for name in NAMES}
    for name in NAMES:
        bench.node.create_subscription(CameraInfo, f"/left/camera/{name}/camera_info", infos[name].append, IMAGE)
    assert bench.until(harness.delivering, START_S)
    assert bench.until(lambda: all(len(found) > 2 for found in infos.values()), START_S)
    third, wrist = infos["third_person"][-1], infos["wrist"][-1]
    assert (third.header.frame_id, wrist.header.frame_id) == (
        "left/third_person_optical_frame",
        "left/wrist_optical_frame",
    )
    assert {stamp_ns(info) for info in infos["wrist"]} & {stamp_ns(image) for image in harness.images["wrist"]}
    assert harness.images["wrist"][-1].header.frame_id == "left/wrist_optical_frame"
    assert (third.width, third.height) == (96, 96)
    # 90 degrees over 96 px: the edge, 48 px from the middle, is seen under 45 degrees.
    np.testing.assert_allclose(np.reshape(third.k, (3, 3)), [[48, 0, 47.5], [0, 48, 47.5], [0, 0, 1]], atol=1e-9)
    np.testing.assert_allclose(np.reshape(third.p, (3, 4))[:, :3], np.reshape(third.k, (3, 3)))
    assert not np.any(wrist.k), "nobody said what the wrist camera's field of view is"
    # Late, as whoever looks at a running system: the transform is latched.
    heard: list[TFMessage] = []
    bench.node.create_subscription(TFMessage, "/tf_static", heard.append, STATIC_TRANSFORMS)
    assert bench.until(lambda: heard, START_S)
    transform, wrist_transform = heard[0].transforms
    ends = wrist_transform.header.frame_id, wrist_transform.child_frame_id
    assert ends == ("left/tool", "left/wrist_optical_frame")
    assert (transform.header.frame_id, transform.child_frame_id) == ("left/base", "left/third_person_optical_frame")
    place, turn = transform.transform.translation, transform.transform.rotation
    assert [place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w] == [0.4, 0.1, 0.9, *turned]


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


def test_a_black_image_is_named_and_ends_the_heartbeats_until_there_is_light(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, topics())
    assert bench.until(harness.delivering, START_S)
    harness.pictures["wrist"] = np.zeros((96, 96, 3), np.uint8)
    assert bench.until(lambda: "camera 'wrist' shows nothing: its image is black" in harness.diagnosis, START_S)
    assert harness.silent()
    assert all(decode_image(image).any() for image in harness.images["wrist"])
    harness.pictures["wrist"] = picture(96, 96)
    before = harness.beats
    assert bench.until(lambda: harness.beats > before + 2 and harness.diagnosis == "delivering", START_S)


def test_a_camera_whose_clock_jumps_is_named_and_goes_on_by_the_arrival_of_its_images(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, topics())
    assert bench.until(harness.delivering, START_S)
    harness.ahead_ns["wrist"] = 4_294_967_296_000
    assert bench.until(lambda: "its clock has jumped" in harness.diagnosis, START_S), harness.diagnosis
    assert "camera 'wrist': its images are stamped 429" in harness.diagnosis
    before = harness.beats
    assert bench.until(lambda: harness.beats > before + 2 and harness.diagnosis == "delivering", START_S)
    assert abs(time.time_ns() - stamp_ns(harness.images["wrist"][-1])) < 5_000_000_000


def test_a_camera_file_of_other_cameras_ends_the_node_with_one_sentence(bench, root, tmp_path):
    Harness(bench, root, tmp_path, {"left": {"source": "twin"}})
    status, output = bench.finish("camera", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "third_person, wrist" in output and "Traceback" not in output


def test_the_twins_cameras_show_the_scene_that_was_published(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, {name: {"source": "twin"} for name in NAMES})
    harness.pictures.clear()
    model = scene_model(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_resetData(model, data)
    scene = TwinScene(
        qpos=data.qpos.tolist(), mocap_pos=data.mocap_pos.ravel().tolist(), mocap_quat=data.mocap_quat.ravel().tolist()
    )
    scenes = bench.node.create_publisher(TwinScene, "/twin/scene", SCENES)
    sent = []

    def publish():
        scene.header.stamp = time_message(time.time_ns())
        sent.append(stamp_ns(scene))
        scenes.publish(scene)

    bench.node.create_timer(0.2, publish)
    assert bench.until(harness.delivering, START_S)
    renderer = SceneRenderer(model, 96, 96, NAMES)
    expected = renderer.render(data.qpos, data.mocap_pos, data.mocap_quat)
    picture = renderer.picture("third_person", 288, 288)
    renderer.close()
    for name in NAMES:
        image = harness.images[name][-1]
        assert stamp_ns(image) in sent
        np.testing.assert_array_equal(decode_image(image), expected[name])
    assert expected["wrist"].std() > 5
    assert bench.until(lambda: harness.views, START_S)
    view = decode_image(harness.views[-1]).astype(int)
    assert view.shape == picture.shape and np.abs(view - picture).mean() < 3
    assert stamp_ns(harness.views[-1]) in sent


def write_bag(folder, seconds):
    """Write a bag of both cameras at 10 Hz; an image begins with its number, and the wrist's arrive 20 ms later."""
    store = get_typestore(Stores.ROS2_JAZZY)
    kind, types = "sensor_msgs/msg/Image", store.types
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for name in NAMES:
            connection = writer.add_connection(f"/camera/{name}/image", kind, typestore=store)
            for index in range(10 * seconds):
                second, tenth = divmod(index, 10)
                stamp = types["builtin_interfaces/msg/Time"](1_700_000_000 + second, tenth * 100_000_000)
                pixels = (picture(96, 96) // 2).ravel()
                pixels[0] = index
                image = types[kind](types["std_msgs/msg/Header"](stamp, name), 96, 96, "rgb8", 0, 288, pixels)
                arrived = (1_700_000_000 + second) * 10**9 + tenth * 10**8 + 20_000_000 * (name == "wrist")
                writer.write(connection, arrived, store.serialize_cdr(image, kind))


def test_a_device_that_comes_after_the_start_is_opened(bench, root, tmp_path):
    bag = {name: {"source": "bag", "address": f"bag:/camera/{name}/image"} for name in NAMES}
    harness = Harness(bench, root, tmp_path, bag)
    harness.pictures.clear()
    assert bench.until(lambda: "cannot be read" in harness.diagnosis, START_S), harness.diagnosis
    assert harness.diagnosis.startswith("camera '") and not harness.beats
    write_bag(tmp_path / "later", seconds=2)
    (tmp_path / "later").rename(tmp_path / "bag")
    assert bench.until(harness.delivering, START_S), harness.diagnosis


def test_the_images_of_a_bag_stand_in_for_cameras_without_end(bench, root, tmp_path):
    write_bag(tmp_path / "bag", seconds=2)
    bag = {name: {"source": "bag", "address": f"bag:/camera/{name}/image"} for name in NAMES}
    whole: list[Image] = []
    bench.node.create_subscription(Image, "/camera/wrist/full", whole.append, IMAGE)  # as bid calibrate does
    harness = Harness(bench, root, tmp_path, bag)
    harness.pictures.clear()
    # Two seconds are twenty pairs: the bag has begun again in these.
    assert bench.until(lambda: min(map(len, harness.images.values())) > 35, 2 * START_S), harness.diagnosis
    assert len(whole) > 5 and (whole[-1].width, whole[-1].height) == (96, 96)
    levels = {name: {stamp_ns(image): int(image.data[0]) for image in harness.images[name]} for name in NAMES}
    # By stamp: what is not sent again may be lost before both topics are discovered.
    both = levels["wrist"].keys() & levels["third_person"].keys()
    assert len(both) > 30 and all(levels["wrist"][at] == levels["third_person"][at] for at in both)
    assert set(levels["wrist"].values()) == set(range(20))
    stamps = [stamp_ns(image) for image in harness.images["wrist"]]
    assert all(80_000_000 < later - sooner < 300_000_000 for sooner, later in pairwise(stamps))
    assert 0 < time.time_ns() - stamps[-1] < 2_000_000_000 and harness.beats > 30


def twin_cameras(root, tmp_path) -> CameraNode:
    """A node in this process whose cameras are the twin's."""
    file = tmp_path / "cameras.yaml"
    file.write_text(yaml.safe_dump({name: {"source": "twin"} for name in NAMES}))
    task = root / "config" / "franka_place" / "task.yaml"
    rclpy.init(args=["--ros-args", "-p", f"task:={task}", "-p", f"cameras:={file}"])
    return CameraNode()


@pytest.mark.parametrize("asked_to_end", [True, False])
def test_a_render_thread_that_fails_ends_the_node_with_status_1(root, tmp_path, ros_domain, monkeypatch, asked_to_end):
    def render(*_):
        if asked_to_end:
            node.end()
        raise RuntimeError("no such context")

    raised = []
    monkeypatch.setattr(SceneRenderer, "render", render)
    # This process is that of all tests, which keeps its priority.
    monkeypatch.setattr("bid_ros.nodes.camera_node.raise_priority", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda hook: raised.append(hook.exc_value))
    node = twin_cameras(root, tmp_path)
    try:
        node.begin()
        node._on_scene(TwinScene())
        (thread,) = (thread for thread in node._threads if thread.name == "render")
        thread.join(START_S)
        assert not thread.is_alive()
    finally:
        node.close()
        node.destroy_node()
        rclpy.try_shutdown()
    # Once the node was asked to end, that a thread fails is no news.
    assert node.ended and node.exit_status == int(not asked_to_end)
    assert [str(error) for error in raised] == ([] if asked_to_end else ["no such context"])

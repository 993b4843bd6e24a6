"""``bid cameras``: real publishers and video files as cameras; what is connected, what it delivers, and its lock."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time

import cv2
import numpy as np
import pytest
import yaml
from qos import IMAGE
from sensor_msgs.msg import CompressedImage, Image

from bid_ros.cameras.base import CameraDescriptor, Frame, LightControl
from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import encode_image
from bid_ros.cameras.registry import CAMERAS
from bid_ros.cli import main
from bid_ros.commands.camera_web import LiveCameras
from bid_ros.nodes.ros_messages import time_message
from bid_ros.system.new import new_system

LIMIT_S = 100.0
RATE_HZ = 20.0
LATE_NS = 30_000_000


@pytest.fixture
def system(tmp_path, ros_domain):
    return new_system(tmp_path / "mine", "franka")


def cameras(*arguments):
    """Return exit status and what was printed, read as JSON."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(["cameras", "--json", *map(str, arguments)])
    return status, json.loads(printed.getvalue())


def beside(bench, *arguments):
    """Run ``bid cameras`` while the bench's publishers publish."""
    results: list = []
    thread = threading.Thread(target=lambda: results.append(cameras(*arguments)))
    thread.start()
    assert bench.until(lambda: results, LIMIT_S)
    thread.join()
    return results[0]


def publish(node, kind, topic, message):
    publisher = node.create_publisher(kind, topic, IMAGE)

    def send():
        message.header.stamp = time_message(time.time_ns() - LATE_NS)
        publisher.publish(message)

    node.create_timer(1 / RATE_HZ, send)


def write_sources(system, third_person, wrist):
    content = {"third_person": third_person, "wrist": wrist}
    (system.folder / "cameras.yaml").write_text("# mine\n" + yaml.safe_dump(content))


def test_image_topics_are_listed_with_rate_delay_size_and_what_their_pixels_are(bench):
    picture, depth = np.zeros((48, 64, 3), np.uint8), np.full((48, 64), 1500, np.uint16)
    packed = bytes(12) + cv2.imencode(".png", depth)[1].tobytes()
    publish(bench.node, Image, "/rgb", Image(**encode_image(picture)))
    deep = CompressedImage(format="16UC1; compressedDepth png", data=packed)
    publish(bench.node, CompressedImage, "/depth/compressedDepth", deep)
    publish(bench.node, Image, "/odd", Image(height=1, width=1, encoding="yuv422", step=2, data=[0, 0]))
    status, said = beside(bench, "--seconds", 1)
    rgb, found, odd = (said["topics"][name] for name in ("/rgb", "/depth/compressedDepth", "/odd"))
    assert status == 0 and rgb["picture"] == "64x48 rgb8" and not rgb["problem"]
    assert 15 < rgb["rate_hz"] < 22 and 0 <= rgb["jitter_ms"] < 50 and 29 < rgb["latency_ms"] < 200
    assert found["picture"] == "64x48 16UC1; compressedDepth png, 1.50 to 1.50 m"
    assert "encoding 'yuv422'; valid are rgb8" in odd["problem"]


def test_cameras_of_a_system_are_opened_and_measured(system, capsys):
    writer = cv2.VideoWriter(str(system.folder / "table.avi"), cv2.VideoWriter_fourcc(*"MJPG"), RATE_HZ, (64, 48))
    for level in range(20):
        writer.write(np.full((48, 64, 3), 10 * level, np.uint8))
    writer.release()
    film = {"source": "uvc", "address": "table.avi"}
    write_sources(system, film, {**film, "address": "no.avi"})
    status, said = cameras(system.folder, "--seconds", 1)
    assert status == 1 and said["third_person"]["state"] == "ok" and 18 < said["third_person"]["rate_hz"] < 22
    assert said["third_person"]["picture"] == "64x48 rgb8" and said["third_person"]["latency_ms"] < 500
    assert said["wrist"]["state"] == "fail" and "no.avi' does not exist" in said["wrist"]["measured"]
    assert main(["cameras", str(system.folder), "wrist"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0].startswith("fail  wrist  camera '")
        and lines[1] == "wrist: correct its source and address in cameras.yaml"
    )


class Lamp:
    """A camera whose exposure is its brightness, and which tells the value."""

    def __init__(self):
        self.asked, self.value, self.chooses = None, 90.0, True

    def ask(self, capture):
        self.asked = capture

    def open(self): ...

    def close(self): ...

    def serial(self):
        return "0042"

    def controls(self):
        return {"exposure": LightControl(self.value, 1, 255)}

    def automatic(self):
        self.value, self.chooses = 90.0, True

    def hold(self, values):
        self.value, self.chooses = values["exposure"], False

    def read(self):
        return Frame(time.time_ns(), np.full((4, 4, 3), round(self.value), np.uint8))


@pytest.fixture
def lamp(monkeypatch):
    monkeypatch.setattr("bid_ros.cameras.locking.SETTLE_S", 0.0)
    monkeypatch.setattr("bid_ros.cameras.locking.CHANGE_S", 0.0)
    found, find, names = Lamp(), CAMERAS.find, CAMERAS.names
    descriptor = CameraDescriptor("lamp", lambda address, folder: found)
    monkeypatch.setattr(CAMERAS, "find", lambda name: descriptor if name == "lamp" else find(name))
    monkeypatch.setattr(CAMERAS, "names", lambda: (*names(), "lamp"))
    return found


def test_a_lock_is_written_with_the_serial_number_and_the_rest_stays(system, lamp):
    write_sources(system, {"source": "topic", "address": "/image"}, {"source": "lamp", "address": "1", "rate_hz": 10})
    before = (system.folder / "cameras.yaml").read_text()
    status, said = cameras(system.folder, "wrist", "--lock")
    assert status == 0 and said["locked"] == {"serial": "0042", "exposure": 90.0} and said["before"] is None
    after = (system.folder / "cameras.yaml").read_text()
    assert after.startswith("# mine\n") and after.replace("\n  locked: {serial: '0042', exposure: 90.0}", "") == before
    assert cameras(system.folder, "wrist", "--lock")[1]["before"] == said["locked"]
    assert lamp.asked.locked is None, "a new lock begins from the automatics"


def test_the_way_back_gives_the_automatics_back_and_takes_the_lock_out(system, lamp, capsys):
    write_sources(system, {"source": "topic", "address": "/image"}, {"source": "lamp", "address": "1"})
    assert main(["cameras", str(system.folder), "wrist", "--lock"]) == 0
    told = capsys.readouterr().out
    assert f"the way back: bid cameras {system.folder} wrist --lock off" in told and not lamp.chooses
    status, said = cameras(system.folder, "wrist", "--lock", "off")
    assert status == 0 and lamp.chooses and said["before"] == {"serial": "0042", "exposure": 90.0}
    assert yaml.safe_load((system.folder / "cameras.yaml").read_text())["wrist"]["locked"] is None
    # A line that was deleted is as good: nothing is written again.
    lamp.chooses, before = False, (system.folder / "cameras.yaml").read_text()
    assert cameras(system.folder, "wrist", "--lock", "off")[0] == 0 and lamp.chooses
    assert (system.folder / "cameras.yaml").read_text() == before


def test_a_lock_that_cannot_be_written_does_not_stay_in_the_device(system, lamp, capsys):
    write_sources(system, {"source": "topic", "address": "/image"}, {"source": "lamp", "address": "1"})
    (system.folder / ".cameras.yaml.trial").mkdir()  # where the new file would be tried
    assert main(["cameras", str(system.folder), "wrist", "--lock"]) == 2
    assert lamp.chooses and "Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lock"], "--lock is given without a camera; valid is one of third_person, wrist"),
        (["third_person", "--lock"], "of source 'topic' cannot be locked here; valid is a device"),
        (["wrist", "--lock"], "is a video file; valid is a device, whose light can be locked"),
        (["left"], "camera is 'left'; valid are third_person, wrist"),
        (["--seconds", "0"], "--seconds is 0; valid is 0.5 to 3600"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(system, capsys, arguments, words):
    writer = cv2.VideoWriter(str(system.folder / "a.avi"), cv2.VideoWriter_fourcc(*"MJPG"), RATE_HZ, (64, 48))
    writer.write(np.zeros((48, 64, 3), np.uint8))
    writer.release()
    write_sources(system, {"source": "topic", "address": "/image"}, {"source": "uvc", "address": "a.avi"})
    before = (system.folder / "cameras.yaml").read_text()
    assert main(["cameras", str(system.folder), *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and words in error
    assert (system.folder / "cameras.yaml").read_text() == before


def test_one_bad_camera_is_named_and_the_others_are_shown(bench, tmp_path):
    picture = np.full((48, 64, 3), 90, np.uint8)
    publish(bench.node, Image, "/rgb", Image(**encode_image(picture)))
    publish(bench.node, Image, "/odd", Image(height=1, width=1, encoding="yuv422", step=2, data=[0, 0]))
    packed = CompressedImage(format="jpeg", data=cv2.imencode(".jpg", picture)[1].tobytes())
    publish(bench.node, CompressedImage, "/rgb/compressed", packed)
    sources = {"one": "/rgb", "same": "/rgb", "odd": "/odd", "packed": "/rgb/compressed"}
    configs = [CameraConfig(name, "topic", address) for name, address in sources.items()]
    shown, said, ended = {}, [], threading.Event()
    live = LiveCameras(
        [*configs, CameraConfig("film", "uvc", "no.avi")],
        tmp_path,
        lambda camera, stamp_ns, image: shown.update({camera.name: image.shape}),
        said.append,
    )
    thread = threading.Thread(target=live.run, args=("", ended))
    thread.start()
    try:
        assert bench.until(lambda: len(shown) == 3 and len(said) == 2, 30.0), (shown, said)
    finally:
        ended.set()
        thread.join()
    assert shown == dict.fromkeys(("one", "same", "packed"), (48, 64, 3))
    film, odd = sorted(said)
    assert film.startswith("film: camera '") and odd.startswith("odd: camera '/odd' publishes")


def test_cameras_that_the_twin_renders_are_not_shown(system, capsys):
    write_sources(system, {"source": "twin"}, {"source": "twin"})
    assert main(["cameras", str(system.folder), "--web"]) == 2
    assert "error: the twin renders these cameras, so they have no live image" in capsys.readouterr().err


def test_no_camera_is_said(ros_domain, capsys, monkeypatch):
    monkeypatch.setattr("bid_ros.cameras.listing.video_nodes", list)
    monkeypatch.setattr("bid_ros.nodes.camera_probe.FOUND_S", 0.1)
    assert main(["cameras"]) == 1
    said = capsys.readouterr().out
    assert "no camera: no RealSense, no device of Video4Linux, and nobody publishes images" in said

"""``bid calibrate`` beside a running system: the bench plays arm and camera, or the twin's own nodes run."""

from __future__ import annotations

import json
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from forked_bid import bid, start_bid
from qos import IMAGE, STATE
from sensor_msgs.msg import Image

from bid_msgs.msg import ArmStatus
from bid_ros.calibration.rigid import apart, from_pose
from bid_ros.cameras.image import encode_image
from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.core.settings import load_yaml
from bid_ros.nodes.ros_messages import pose_message, time_message

ROBOT = "172.16.0.2"
START_S = 40.0


@pytest.fixture
def folder(root, tmp_path):
    """A system of one's own, whose camera says its field of view."""
    made = shutil.copytree(root / "config" / "franka_place", tmp_path / "system")
    file = made / "cameras.yaml"
    text = file.read_text()
    file.write_text(text.replace("wrist:\n", "wrist:  # mine\n  fovy: 75.0\n"))
    return made


class Robot:
    """Arm and camera driver: both say what one picture shows, until the next."""

    def __init__(self, bench) -> None:
        self._arm = bench.node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._camera = bench.node.create_publisher(Image, "/wrist/color/image_raw", IMAGE)
        self.shot, self._turn = None, 0
        bench.node.create_timer(0.05, self._publish)

    def _publish(self) -> None:
        if self.shot is None:
            return
        now = time_message(time.time_ns())
        tool = self.shot.tool
        status = ArmStatus(tool=pose_message(tool[:3, 3], quaternion_from_matrix(tool[:3, :3])))
        status.header.stamp = now
        self._arm.publish(status)
        self._turn += 1
        if self._turn % 5 == 0:
            message = Image(**encode_image(self.shot.image))
            message.header.stamp = now
            self._camera.publish(message)


def test_a_person_guides_a_robot_and_an_image_is_taken_at_each_rest(rig, bench, folder, tmp_path):
    made, robot, said = rig("franka_place", "hand-eye"), Robot(bench), tmp_path / "said"
    shots = made.drive(10)
    out = tmp_path / "images"
    words = ("calibrate", "hand-eye", str(folder), "wrist", "--robot-ip", ROBOT, "--out", str(out))
    process = start_bid(*words, output=said)
    for number, shot in enumerate(shots, 1):
        robot.shot = shot
        assert bench.until(lambda number=number: f"{number:2} of 15" in said.read_text(), START_S), said.read_text()
    process.send_signal(signal.SIGINT)  # Ctrl-C: enough
    assert process.wait(START_S) == 0, said.read_text()
    text = (folder / "cameras.yaml").read_text()
    wrist = load_yaml(text)["wrist"]
    assert "wrist:  # mine" in text and wrist["frame"] == "tool" and "position" not in wrist["twin"]
    off, angle = apart(from_pose(wrist["position"], wrist["quaternion"]), made.truth()[0])
    assert off < 0.003 and angle < 0.3
    assert (out / "axes.png").exists() and "10 images" in said.read_text()
    # The same images give the same result; nothing else in the file changes.
    again = bid("calibrate", "hand-eye", str(folder), "wrist", "--from", str(out), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["position"] == wrist["position"]
    assert (folder / "cameras.yaml").read_text() == text
    # One image tells whether the camera has moved.
    check = ("calibrate", "check", str(folder), "wrist", "--robot-ip", ROBOT)
    assert _while_spinning(bench, check, tmp_path / "still") == 0, (tmp_path / "still").read_text()
    robot.shot = replace(shot, image=np.roll(shot.image, 12, axis=1))
    assert _while_spinning(bench, check, tmp_path / "moved") == 1
    assert "camera wrist has moved by" in (tmp_path / "moved").read_text()


def _while_spinning(bench, words, output) -> int:
    process = start_bid(*words, output=output)
    assert bench.until(lambda: process.poll() is not None, START_S)
    return process.wait(START_S)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hand-eye", "."), "no camera is named; valid are third_person, wrist"),
        (("hand-eye", ".", "front"), "camera is 'front'; valid are third_person, wrist"),
        (("fixed", ".", "wrist", "--from", "nowhere"), "nowhere has no poses.json; valid is a folder that"),
        (
            ("check", ".", "wrist"),
            "camera 'wrist' has no calibration in cameras.yaml; measure it with bid calibrate",
        ),
        (("check", ".", "wrist", "--drive"), "--drive is given; valid with hand-eye and fixed"),
        (("hand-eye", ".", "wrist", "--drive", "--robot-ip", ROBOT), "has passed 0 stages; valid are 3 or more"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(folder, words, said):
    before = (folder / "cameras.yaml").read_text()
    done = bid("calibrate", words[0], str(folder), *words[2:])
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert (folder / "cameras.yaml").read_text() == before


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_twin_is_driven_to_proposed_poses(rig, folder, ros_domain, tmp_path):
    made = rig("franka_place", "hand-eye")
    done = bid("calibrate", "hand-eye", str(folder), "wrist", "--drive", "--out", str(tmp_path / "out"), limit_s=350.0)
    assert done.returncode == 0, done.stderr
    wrist = load_yaml((folder / "cameras.yaml").read_text())["wrist"]
    assert "position" not in wrist
    off, angle = apart(from_pose(wrist["twin"]["position"], wrist["twin"]["quaternion"]), made.truth()[0])
    assert off < 0.002 and angle < 0.3, (done.stdout, off, angle)

"""``bid check``: real publishers, real twins as robots, and every way a folder can be wrong."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import threading
import time

import cv2
import numpy as np
import pytest
import yaml
from forked_bid import bid
from geometry_msgs.msg import WrenchStamped
from qos import IMAGE
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import Image

from bid_ros.cameras.image import encode_image
from bid_ros.cli import main
from bid_ros.core.errors import BidError, TaskError
from bid_ros.nodes.ros_messages import time_message
from bid_ros.system.check.folder import folder_findings
from bid_ros.system.check.hardware import twin_findings
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments
from bid_ros.tasks.twins import build_twin

LIMIT_S = 100.0
SECOND = 1_000_000_000


def check(folder, *arguments):
    """Return exit status and findings by what they are of."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(["check", str(folder), "--json", *arguments])
    report = json.loads(printed.getvalue())
    findings = {finding["what"]: finding for finding in report["findings"]}
    assert report["fails"] == sum(finding["state"] == "fail" for finding in findings.values())
    assert all(bool(finding["advice"]) == (finding["state"] != "ok") for finding in findings.values())
    return status, findings


@pytest.fixture
def system(tmp_path, ros_domain):
    return new_system(tmp_path / "mine", "franka")


@pytest.fixture(params=["franka", "ur"])
def of_either_robot(request, tmp_path, ros_domain):
    return new_system(tmp_path / "mine", request.param)


def edit(system, file, **values):
    """Replace fields of a file of the system; None leaves one out."""
    path = system.folder / file
    content = {**yaml.safe_load(path.read_text()), **values}
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))


def cameras(**replaced):
    topics = {name: {"source": "topic", "address": f"/driver/{name}"} for name in ("third_person", "wrist")}
    return {name: {**topics[name], **replaced.get(name, {})} for name in topics}


def test_a_new_system_has_nothing_that_fails_in_its_twin(of_either_robot):
    system = of_either_robot
    status, findings = check(system.folder, "--out", str(system.folder.parent / "out"))
    assert status == 0, findings
    files = ["task.yaml", "robot.yaml", "cameras.yaml", "nodes.yaml", "view.rviz"]
    assert list(findings) == [
        *(*files, "driver", "ROS", "twin", "rendering", "parameters", "libraries", "runtimes"),
        *("clock", "rtprio", "memlock", "kernel", "receive buffers", "disk"),
    ]
    assert findings["driver"]["measured"] == "device exercise"
    assert "2 images of 96x96 px in" in findings["rendering"]["measured"]
    assert not (system.folder.parent / "out").exists(), "a check writes nothing"


def test_the_table_has_one_line_each_and_says_what_to_do(system):
    edit(system, "nodes.yaml", arm={"ros__parameters": {"lookahed_s": 0.04}})
    done = bid("check", str(system.folder), limit_s=LIMIT_S)
    assert done.returncode == 1 and not done.stderr
    lines = done.stdout.splitlines()
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in lines)
    (failed,) = [line for line in lines if line.startswith("fail")]
    assert "node 'arm' has no parameter 'lookahed_s'; valid are task, arm" in failed and "-> correct " in failed


@pytest.mark.parametrize("verb", ["check", "rehearse"])
def test_without_offscreen_rendering_a_verb_says_what_lacks(ros_domain, monkeypatch, verb):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", os.devnull)
    done = bid(verb, "franka_place", limit_s=LIMIT_S)
    assert done.returncode == {"check": 1, "rehearse": 2}[verb]
    (said,) = [line for line in (done.stdout + done.stderr).splitlines() if "no offscreen rendering" in line]
    assert said.startswith({"check": "fail  rendering ", "rehearse": "error: no offscreen rendering: egl says "}[verb])
    assert said.endswith("install it with: apt-get install libgl1-mesa-dri, or unset MUJOCO_GL")
    assert "Traceback" not in done.stderr


def test_a_camera_that_the_twin_lacks_is_named_and_not_a_library(tmp_path, ros_domain):
    system = new_system(tmp_path / "mine", like="franka_place")
    task = yaml.safe_load((system.folder / "task.yaml").read_text())
    roof = {"name": "roof", "kind": "image", "shape": [96, 96, 3]}
    edit(system, "task.yaml", observation=[*task["observation"], roof])
    edit(system, "cameras.yaml", roof={"source": "topic", "address": "roof/image", "twin": {"source": "twin"}})
    edit(system, "system.yaml", driver="scripted")
    task = find_system(system.folder).task
    twin, said = twin_findings(task, [camera.name for camera in task.cameras])
    assert twin.state == "ok"
    assert said.measured == "the twin has no camera 'roof'; valid are third_person, wrist" and said.state == "fail"
    assert "in task.yaml, or name another source in the section twin of cameras.yaml" in said.advice
    clip = {"source": "uvc", "address": "roof.mp4"}
    edit(system, "cameras.yaml", roof={"source": "topic", "address": "roof/image", "twin": clip})
    status, findings = check(system.folder)
    assert findings["rendering"]["state"] == "ok" and "2 images" in findings["rendering"]["measured"]
    assert status == 1 and "roof.mp4" in findings["camera roof"]["measured"]


class Drivers:
    """Publishes a picture per topic at a rate of its own."""

    def __init__(self, node):
        self._node = node

    def add(self, topic, rate, width=160, height=120, encoding="rgb8", late_s=0.0):
        message = Image(**encode_image(np.zeros((height, width, 3), np.uint8)))
        message.encoding = encoding
        publisher = self._node.create_publisher(Image, topic, IMAGE)

        def publish():
            message.header.stamp = time_message(time.time_ns() - round(late_s * SECOND))
            publisher.publish(message)

        self._node.create_timer(1 / rate, publish)


def check_beside(bench, *arguments):
    """Run ``bid check`` while the bench's publishers publish."""
    results = []
    thread = threading.Thread(target=lambda: results.append(check(*arguments)))
    thread.start()
    assert bench.until(lambda: results, LIMIT_S)
    thread.join()
    return results[0]


def test_a_robot_through_ros_is_connected_to_and_fails_where_its_driver_does_not_run(tmp_path, bench):
    system = new_system(tmp_path / "mine", "ros")
    _, findings = check_beside(bench, system.folder, "--robot-ip", "arm")
    silent = findings["robot arm"]
    assert silent["state"] == "fail" and "robot at arm: nobody publishes /joint_states" in silent["measured"]
    assert "start the robot's ROS driver, and correct" in silent["advice"]
    bench.start("twin", {"task": str(system.file("task.yaml")), "address": "arm"})
    assert bench.until(lambda: bench.node.count_publishers("/joint_states"), LIMIT_S)
    _, findings = check_beside(bench, system.folder, "--robot-ip", "arm")
    assert findings["robot arm"]["measured"].startswith("6 joints, state "), findings["robot arm"]


def test_camera_topics_are_measured(bench, system):
    drivers = Drivers(bench.node)
    drivers.add("/driver/third_person", 20.0)
    drivers.add("/driver/wrist", 20.0, 96, 96, late_s=3.0)
    edit(system, "cameras.yaml", **cameras())
    _, findings = check_beside(bench, system.folder, "--robot-ip", "127.0.0.88")
    first, wrist = findings["camera third_person"], findings["camera wrist"]
    assert first["state"] == "ok" and "160x120 rgb8" in first["measured"]
    assert 15 < float(first["measured"].split(" Hz")[0]) < 22
    assert wrist["state"] == "warn" and "clocks" in wrist["advice"]
    assert 2900 < float(wrist["measured"].split("stamps ")[1].split(" ms")[0]) < 3500


def test_camera_topics_that_do_not_suit_the_task_fail(bench, system):
    drivers = Drivers(bench.node)
    drivers.add("/driver/third_person", 4.0)
    drivers.add("/driver/wrist", 20.0, encoding="16UC1")
    edit(system, "cameras.yaml", **cameras())
    status, findings = check_beside(bench, system.folder, "--robot-ip", "127.0.0.88")
    assert status == 1
    slow, deep = findings["camera third_person"], findings["camera wrist"]
    assert slow["state"] == "fail" and "4." in slow["measured"] and slow["advice"].startswith("make it 10 Hz or more")
    assert deep["state"] == "fail" and "encoding '16UC1'; valid are rgb8" in deep["measured"]


def test_a_topic_without_images_and_a_crop_that_leaves_them_fail(bench, system):
    Drivers(bench.node).add("/driver/wrist", 20.0)
    edit(system, "cameras.yaml", **cameras(wrist={"crop": [0, 0, 400, 400]}))
    _, findings = check_beside(bench, system.folder, "--robot-ip", "127.0.0.88")
    nothing, cropped = findings["camera third_person"], findings["camera wrist"]
    assert nothing["state"] == "fail"
    assert nothing["measured"] == "0 images of topic /driver/third_person in 5 s, 0 publishers"
    assert cropped["state"] == "fail" and "leaves the image of 160x120 px" in cropped["measured"]


def test_a_camera_device_is_opened_and_measured(tmp_path, system):
    writer = cv2.VideoWriter(str(system.folder / "table.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 20.0, (64, 48))
    for level in range(20):
        writer.write(np.full((48, 64, 3), 10 * level, np.uint8))
    writer.release()
    video = {"source": "uvc", "address": "table.avi"}
    edit(
        system, "cameras.yaml", **cameras(third_person={"twin": video}, wrist={"twin": {**video, "address": "no.avi"}})
    )
    status, findings = check(system.folder)
    assert status == 1
    assert findings["camera third_person"]["state"] == "ok" and "64x48" in findings["camera third_person"]["measured"]
    assert "no.avi' does not exist" in findings["camera wrist"]["measured"]
    _, findings = check(system.folder, "--driver", "policy", "--decision-rate", "30")
    slow = findings["camera third_person"]
    rate_hz, unit = slow["measured"].split()[:2]
    assert slow["state"] == "fail" and 10.0 < float(rate_hz) < 21.0 and unit == "Hz,", slow
    assert slow["advice"] == "make it 30 Hz or more, as decision_rate_hz asks for it: each decision sees a new image"


@pytest.fixture
def no_wait_for_topics(monkeypatch):
    """Give up topics at once that nobody publishes: what is tested is something else."""
    monkeypatch.setattr("bid_ros.system.check.cameras.FIRST_S", 0.2)


def test_a_robot_that_answers_is_reached_and_does_not_move(of_either_robot, no_wait_for_topics):
    system, address = of_either_robot, "127.0.0.61"
    twin = build_twin(system.task, address)
    twin.start()
    try:
        before = twin.scene_state().qpos
        _, findings = check(system.folder, "--robot-ip", address)
        robot = findings[f"robot {address}"]
        assert robot["state"] == "ok" and "answer in" in robot["measured"], robot
        _, again = check(system.folder, "--robot-ip", address)
        assert again[f"robot {address}"]["state"] == "ok", "the first check left the robot deaf"
        np.testing.assert_allclose(twin.scene_state().qpos, before, atol=2e-3)
    finally:
        twin.stop()
    status, findings = check(system.folder, "--robot-ip", address)
    assert status == 1 and "no port of" in findings[f"robot {address}"]["measured"]


FORCE = {
    "name": "force",
    "kind": "vector",
    "topic": "ft_sensor/wrench",
    "type": "geometry_msgs/msg/WrenchStamped",
    "field": "wrench.force",
    "shape": [3],
    "rate_hz": 50,
}


def observe(system, *features):
    """Observe more than the system does."""
    content = yaml.safe_load((system.folder / "task.yaml").read_text())
    edit(system, "task.yaml", observation=[*content["observation"], *features])


def test_topics_of_vectors_are_measured(bench, system):
    vectors = [{**FORCE, "name": name, "topic": f"/{name}"} for name in ("good", "slow", "torn", "silent", "other")]
    effort = {"topic": "joint_states", "type": "sensor_msgs/msg/JointState", "field": "effort", "shape": [7]}
    observe(system, *vectors, {**FORCE, "name": "effort", **effort})
    best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    for name, rate, force in (("good", 100, 1.0), ("slow", 20, 1.0), ("torn", 100, float("nan"))):
        publisher = bench.node.create_publisher(WrenchStamped, f"/{name}", best_effort)

        def publish(publisher=publisher, force=force):
            message = WrenchStamped()
            message.header.stamp, message.wrench.force.x = time_message(time.time_ns()), force
            publisher.publish(message)

        bench.node.create_timer(1 / rate, publish)
    bench.node.create_publisher(Image, "/other", IMAGE)
    _, findings = check_beside(bench, system.folder)
    good = findings["vector good"]
    assert good["state"] == "ok" and "3 numbers" in good["measured"] and 70 < float(good["measured"].split()[0]) < 130
    assert findings["vector slow"]["advice"].startswith("make it 50 Hz or more")
    assert "'torn' is [nan, 0.0, 0.0]; valid are 3 finite numbers" in findings["vector torn"]["measured"]
    silent = findings["vector silent"]
    # Nothing in the twin delivers a force, and it starts all the same.
    assert (silent["state"], silent["measured"]) == ("warn", "0 messages of /silent in 5 s, 0 publishers")
    assert findings["vector other"]["measured"].endswith("1 publishers of sensor_msgs/msg/Image")
    assert "vector effort" not in findings, "the arm node publishes it, which does not run yet"


def test_a_silent_vector_fails_where_there_is_a_robot(system, no_wait_for_topics):
    observe(system, FORCE)
    _, findings = check(system.folder, "--robot-ip", "127.0.0.88", "--namespace", "/left")
    assert findings["task.yaml"]["state"] == "ok" and findings["vector force"]["state"] == "fail"


@pytest.mark.parametrize(
    ("feature", "sentence"),
    [
        ({**FORCE, "type": "ft_msgs/msg/Ft"}, "'force' .*'ft_msgs/msg/Ft' is not installed; looked in"),
        ({**FORCE, "field": "wrench.forc"}, "'force' .* has no 'forc' there; valid are force, torque"),
        ({**FORCE, "field": "header.frame_id"}, "'force' .*: it holds a string; valid are numbers"),
        ({**FORCE, "shape": [6]}, r"'force' .* has shape \(6,\); valid is \(3,\)"),
        ({**FORCE, "topic": "ft-sensor"}, "'force' of kind 'vector' has topic 'ft-sensor'; valid is a ROS name"),
        ({**FORCE, "topic": "/arm/status"}, "'force' has topic '/arm/status'; valid is 'arm/status'"),
        (
            {"name": "joint_positions", "kind": "joints", "shape": [6]},
            r"has shape \(6,\); valid is \(7,\), the joints of robot 'franka'",
        ),
    ],
)
def test_a_vector_that_cannot_be_observed_is_found_in_the_task(system, feature, sentence):
    observe(system, feature)
    arguments = RunArguments()
    findings = {finding.what: finding for finding in folder_findings(find_system(system.folder), arguments)}
    assert findings["task.yaml"].state == "fail" and re.search(sentence, findings["task.yaml"].measured), findings
    assert f"correct {system.folder / 'task.yaml'}" == findings["task.yaml"].advice
    with pytest.raises(BidError, match=rf"^task file {system.folder / 'task.yaml'}: .*{sentence}"):
        describe(find_system(system.folder), arguments)


def test_a_ur_observes_six_joints(tmp_path):
    system = new_system(tmp_path / "mine", "ur")
    observe(system, {"name": "joint_positions", "kind": "joints"})
    with pytest.raises(
        TaskError, match=r"'joint_positions' has shape \(7,\); valid is \(6,\), the joints of robot 'ur'"
    ):
        find_system(system.folder).check(twin=True)
    system = new_system(tmp_path / "other", "ur")
    observe(system, {"name": "joint_positions", "kind": "joints", "shape": [6]})
    find_system(system.folder).check(twin=True)


PLACE = {"shape": "sphere", "size": [0.06, 0.06, 0.06], "start_min": [0.45, 0.0], "start_max": [0.45, 0.0]}
CROWDED = [{"name": name, **PLACE} for name in ("cup", "mug")]


@pytest.mark.parametrize(
    ("file", "values", "what", "sentence"),
    [
        ("task.yaml", {"horizon": None}, "task.yaml", "the field 'horizon' is missing"),
        ("task.yaml", {"horizons": 3}, "task.yaml", "unknown field 'horizons'; valid are name, robot"),
        ("task.yaml", {"rate_hz": 0}, "task.yaml", "rate_hz is 0; valid is .*1 to 100"),
        ("task.yaml", {"kind": "juggling"}, "task.yaml", "kind of task 'juggling' does not exist; valid are picking"),
        (
            "task.yaml",
            {"objects": CROWDED},
            "task.yaml",
            "no room for 'mug' beside the others; valid is",
        ),
        ("task.yaml", {"robot": "kuka"}, "robot.yaml", "robot 'kuka' does not exist; valid are franka, ros, ur"),
        ("robot.yaml", {"stifness": 3}, "robot.yaml", "unknown field 'stifness'; valid are joint_prefix"),
        ("robot.yaml", {"max_force": -1.0}, "robot.yaml", "max_force is -1"),
        ("cameras.yaml", {"wrist": {"source": "gige"}}, "cameras.yaml", "source 'gige'; valid are twin, topic, bag"),
        ("cameras.yaml", {"wrist": None}, "cameras.yaml", "'wrist' that the task observes is missing"),
        ("nodes.yaml", {"camra": {}}, "nodes.yaml", "unknown field 'camra'; valid are arm, camera"),
        (
            "nodes.yaml",
            {"safety": {"ros__parameters": {"late": 9}}},
            "nodes.yaml",
            "no parameter 'late'; valid are task",
        ),
        ("system.yaml", {"driver": "mindreader"}, "driver", "device 'mindreader' does not exist; valid are exercise"),
        ("system.yaml", {"driver": "policy"}, "driver", "has no policy: train one"),
        ("system.yaml", {"driver": "policy", "policy": {"bundle": "ur5_pick"}}, "driver", "was made for another task"),
        (
            "system.yaml",
            {"driver": "policy", "policy": {"bundle": "nothing"}},
            "driver",
            "models/nothing was not found",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_its_line_and_the_other_lines_are_there(
    system, file, values, what, sentence
):
    edit(system, file, **values)
    status, findings = check(system.folder)
    assert status == 1 and findings[what]["state"] == "fail", findings
    assert re.search(sentence, findings[what]["measured"]), findings[what]
    assert findings[what]["measured"].count("\n") == 0 and findings["disk"]["state"] == "ok"
    assert [name for name, item in findings.items() if item["measured"] == findings[what]["measured"]] == [what]


def test_a_camera_that_was_moved_since_its_calibration_is_said_in_the_line_of_the_cameras(system):
    record = {"date": "2026-03-01", "images": 15, "error_px": 0.4, "error_mm": 1.0, "error_deg": 0.1}
    record |= {"board_position": [0.5, 0.0, 0.0], "board_quaternion": [0.0, 0.0, 0.0, 1.0]}
    pose = {"position": [1.0, 0.0, 1.0], "quaternion": [1.0, 0.0, 0.0, 0.0]}
    moved = {**pose, "calibration": record, "moved": "2026-03-02"}
    edit(system, "cameras.yaml", **cameras(third_person={"source": "topic", "address": "/driver", **moved}))
    found = list(folder_findings(find_system(system.folder), RunArguments(robot_ip="127.0.0.9")))
    (bad,) = [item for item in found if item.state == "fail"]
    assert bad.what == "cameras.yaml" and "is older than the camera's last move, 2026-03-02" in bad.measured


@pytest.mark.parametrize("file", ["task.yaml", "robot.yaml", "cameras.yaml", "nodes.yaml", "view.rviz"])
def test_a_file_that_is_missing_is_named(system, file):
    (system.folder / file).unlink()
    status, findings = check(system.folder)
    assert status == 1 and findings[file]["state"] == "fail" and f"has no file {file}" in findings[file]["measured"]


def test_a_folder_that_is_no_system_is_bad_input(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"error: folder {tmp_path} is no system: it has no system.yaml; make one with: bid new FOLDER\n"
    )

"""The recorder node as a real process: what it keeps, also when it is killed."""

from __future__ import annotations

import json
import resource
import signal
import time

import numpy as np
import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from qos import EVENT, EVERY_STATE, IMAGE, STATE
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_msgs.msg import Float32MultiArray, String

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.cameras.image import decode_image, encode_image
from bid_ros.core.clocks import read_clocks
from bid_ros.core.task import load_task
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, camera_topic
from bid_ros.formats import build_dataset
from bid_ros.nodes.recorder_node import RecorderNode
from bid_ros.nodes.ros_messages import time_message
from bid_ros.recording.reader import BagReader

START_S = 40.0
LAUNCH_S = 5.0  # from its SIGINT to its SIGTERM


class Harness:
    """Publishes numbered messages and remembers when each was sent."""

    def __init__(self, bench, root, bag, namespace="", arguments=()):
        self.bench = bench
        self.bag = bag
        self.sent_ns: list[int] = []
        node = bench.node
        self.statuses = node.create_publisher(ArmStatus, f"{namespace}/arm/status", STATE)
        self.images = node.create_publisher(Image, f"{namespace}/camera/wrist/image", IMAGE)
        self.events = node.create_publisher(EpisodeEvent, f"{namespace}/episode/event", EVENT)
        # Before the recorder is there: a latched topic has to reach it all the same.
        self.events.publish(EpisodeEvent(kind=EpisodeEvent.START, label="clean", seed=7))
        self._timer = node.create_timer(0.02, self._publish)
        parameters = {"task": str(root / "config" / "franka_place" / "task.yaml"), "bag": str(bag)}
        bench.start("recorder", parameters, *arguments)

    def _publish(self):
        if not self.statuses.get_subscription_count():
            return
        self.statuses.publish(ArmStatus(sequence=len(self.sent_ns), gripper_width=0.04))
        self.sent_ns.append(time.monotonic_ns())
        if len(self.sent_ns) % 5 == 0:
            self.images.publish(Image(**encode_image(np.full((96, 96, 3), 7, np.uint8))))

    def finish(self):
        """End the recorder as a person does. It waits a while for the last words of an arm and an episode that live."""
        self._timer.cancel()
        for publisher in (self.statuses, self.events):
            self.bench.node.destroy_publisher(publisher)
        self.bench.processes["recorder"].send_signal(signal.SIGTERM)
        status, output = self.bench.finish("recorder", START_S)
        assert status == 0 and "Traceback" not in output

    def record_for(self, seconds: float):
        assert self.bench.until(lambda: self.sent_ns, START_S), "the recorder did not subscribe"
        assert self.bench.until(lambda: time.monotonic_ns() - self.sent_ns[0] > seconds * 1e9, START_S)

    def recorded(self, topic: str):
        with BagReader(self.bag) as reader:
            return [item.message for item in reader.messages([topic])]


def test_records_every_message_and_how_it_was_offered_and_closes_its_bag(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag")
    harness.record_for(2.0)
    publishers = (harness.statuses, harness.images, harness.events)
    profiles = {publisher.topic_name: publisher.qos_profile for publisher in publishers}
    harness.finish()
    content = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    offered = {
        item["topic_metadata"]["name"]: item["topic_metadata"]["offered_qos_profiles"][0]
        for item in content["topics_with_message_count"]
    }
    for name, profile in profiles.items():
        assert offered[name]["depth"] == profile.depth
        assert offered[name]["durability"].upper() == profile.durability.name
    with BagReader(tmp_path / "bag") as reader:
        assert reader.was_complete
    numbers = [message.sequence for message in harness.recorded("/arm/status")]
    # The first may precede the match of the two ends, for long on a busy computer; from then on none is missing.
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] < 0.5 * len(harness.sent_ns) and numbers[-1] > len(harness.sent_ns) - 10
    (event,) = harness.recorded("/episode/event")
    assert (event.kind, event.label, event.seed) == (EpisodeEvent.START, "clean", 7)
    image = harness.recorded("/camera/wrist/image")[0]
    assert (image.width, image.encoding) == (96, "rgb8") and (np.asarray(image.data) == 7).all()


def test_a_bag_of_a_namespace_holds_full_names_and_is_read_by_relative_ones(bench, root, tmp_path):
    bag = tmp_path / "bag"
    remap = ("-r", "__ns:=/left", "-r", "camera/wrist/image:=eye")
    harness = Harness(bench, root, bag, "/left", remap)
    eye = bench.node.create_publisher(Image, "/left/eye", IMAGE)
    bench.node.create_timer(0.1, lambda: eye.publish(Image(**encode_image(np.full((96, 96, 3), 5, np.uint8)))))
    harness.record_for(1.0)
    harness.finish()
    with BagReader(bag) as reader:
        assert {"/left/arm/status", "/left/eye", "/diagnostics"} <= set(reader.topics)
        assert reader.recorded_name(ARM_STATUS) == "/left/arm/status"
    assert harness.recorded(EPISODE_EVENT) and len(harness.recorded(ARM_STATUS)) > 30
    assert {int(message.data[0]) for message in harness.recorded(camera_topic("wrist"))} == {5}


def test_with_simulated_time_messages_get_that_time_and_none_before_it_began(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag", arguments=("-p", "use_sim_time:=true"))
    problems: list[str] = []
    bench.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda item: problems.append(item.status[0].message), STATE
    )
    assert bench.until(lambda: any("no /clock has arrived" in problem for problem in problems), START_S)
    clock = bench.node.create_publisher(Clock, "/clock", STATE)
    begun = time.monotonic()
    tick = bench.node.create_timer(
        0.01, lambda: clock.publish(Clock(clock=time_message(1000 * 10**9 + int(0.5e9 * (time.monotonic() - begun)))))
    )
    assert bench.until(lambda: problems[-1].startswith("recording"), START_S)
    count = len(harness.sent_ns)
    assert bench.until(lambda: len(harness.sent_ns) > count + 100, START_S)
    tick.cancel()
    harness.finish()
    with BagReader(tmp_path / "bag") as reader:
        stamps = [item.stamp_ns for item in reader.messages([ARM_STATUS])]
    assert len(stamps) > 80 and min(stamps) >= 1000 * 10**9
    # Half the pace of this computer: a hundred messages 20 ms apart last one second of it, not two.
    assert stamps[-1] - stamps[0] < 0.7 * (harness.sent_ns[-1] - harness.sent_ns[-len(stamps)])


def test_a_killed_recorder_loses_at_most_the_last_second(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag")
    harness.record_for(3.0)
    recorder = bench.processes["recorder"]
    killed_ns = time.monotonic_ns()
    recorder.kill()
    bench.finish("recorder", START_S)
    with BagReader(tmp_path / "bag") as reader:
        assert not reader.was_complete
    numbers = [message.sequence for message in harness.recorded("/arm/status")]
    old = sum(sent < killed_ns - 1e9 for sent in harness.sent_ns)
    assert old > 50
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] < 10
    assert numbers[-1] >= old - 1
    assert harness.recorded("/episode/event") and harness.recorded("/camera/wrist/image")


def test_it_ends_in_the_time_that_launch_gives_though_an_arm_that_never_connected_lives_on(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag")
    harness.record_for(1.0)
    asked = time.monotonic()
    bench.processes["recorder"].send_signal(signal.SIGINT)
    status, output = bench.finish("recorder", START_S)
    assert time.monotonic() - asked < LAUNCH_S
    assert status == 0 and "Traceback" not in output
    with BagReader(tmp_path / "bag") as reader:
        assert reader.was_complete
    assert len(harness.recorded("/arm/status")) > 20


def test_a_hold_up_between_its_two_clocks_makes_no_message_older(root, tmp_path, ros_domain, monkeypatch):
    task = root / "config" / "franka_place" / "task.yaml"
    rclpy.init(args=["--ros-args", "-p", f"task:={task}", "-p", f"bag:={tmp_path / 'bag'}"])
    node = RecorderNode()
    held_up_s, now_ns = [0.03], node.now_ns

    def slow() -> int:
        now = now_ns()
        time.sleep(held_up_s.pop() if held_up_s else 0.0)
        return now

    monkeypatch.setattr(node, "now_ns", slow)
    try:
        now, steady = read_clocks(node.now_ns)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    # Largest: this process may be held up between its readings, too.
    assert not held_up_s
    assert now - steady == pytest.approx(max(time.time_ns() - time.monotonic_ns() for _ in range(20)), abs=5e6)


class Folder(Harness):
    """A recorder that gives each episode a bag of its own."""

    def __init__(self, bench, root, folder, **parameters):
        self.bench, self.sent_ns = bench, []
        node = bench.node
        self.statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self.images = node.create_publisher(Image, "/camera/wrist/image", IMAGE)
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        self.notes = node.create_publisher(String, "/episode/note", STATE)
        self._timer = node.create_timer(0.02, self._publish)
        self.news: list[DiagnosticStatus] = []
        node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda item: self.news.extend(item.status), EVERY_STATE
        )
        task = {"task": str(root / "config" / "franka_place" / "task.yaml")}
        bench.start("recorder", {**task, "episodes": str(folder), **parameters})
        assert bench.until(lambda: self.sent_ns and self.notes.get_subscription_count() and self.news, START_S)

    def says(self, text):
        return self.bench.until(lambda: text in self.news[-1].message, START_S)

    def event(self, kind, episode, outcome=""):
        event = EpisodeEvent(kind=kind, episode=episode, outcome=outcome, success=outcome == "success")
        event.header.stamp = time_message(time.time_ns())
        self.events.publish(event)


def test_episodes_get_bags_of_their_own_with_notes_counters_and_compressed_images(bench, root, tmp_path):
    folder = tmp_path / "episodes"
    harness = Folder(bench, root, folder, image_codec="png", setup='{"device": "page"}')
    assert harness.says("between episodes")
    harness.event(EpisodeEvent.START, 0)
    assert harness.says("recording episode 0, 2.")
    values = {item.key: item.value for item in harness.news[-1].values}
    assert 40 < float(values["hz_arm_status"]) < 60 and 5 < float(values["hz_camera_wrist_image"]) < 15
    assert (values["dropped"], values["lost_on_the_way"]) == ("{}", "{}")
    assert float(values["disk_left_s"]) > 0 and float(values["cpu_percent"]) < 100
    harness.notes.publish(String(data="a good one"))
    harness.event(EpisodeEvent.END, 0, "success")
    assert harness.says("between episodes")
    harness.event(EpisodeEvent.START, 1)
    assert harness.says("recording episode 1, 1.")
    harness.event(EpisodeEvent.END, 1, "discarded")
    assert bench.until(lambda: (folder / ".bid_trash").is_dir(), START_S)
    harness.finish()
    assert [path.name for path in folder.iterdir() if path.name[0] != "."] == ["0000"]
    with BagReader(folder / "0000") as reader:
        assert reader.was_complete
        numbers = [item.message.sequence for item in reader.messages([ARM_STATUS])]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 100
        pictures = [decode_image(item.message) for item in reader.messages([camera_topic("wrist")])]
        assert len(pictures) > 20 and all((picture == 7).all() for picture in pictures)
        about = json.loads(reader.custom["episode"])
        assert (about["outcome"], about["notes"]) == ("success", ["a good one"])
        assert "franka_place" in reader.custom["task.yaml"]
        assert json.loads(reader.custom["hardware"])["device"] == "page"


def test_a_killed_recorder_of_episodes_leaves_each_of_them_playable(bench, root, tmp_path):
    harness = Folder(bench, root, tmp_path)
    for episode in range(2):
        harness.event(EpisodeEvent.START, episode)
        assert harness.says(f"recording episode {episode}, 2.")
    bench.processes["recorder"].kill()
    bench.finish("recorder", START_S)
    for name in ("0000", "0001"):
        with BagReader(tmp_path / name) as reader:
            assert reader.was_complete == (name == "0000")
            numbers = [item.message.sequence for item in reader.messages([ARM_STATUS])]
            assert len(numbers) > 50 and numbers == list(range(numbers[0], numbers[-1] + 1))


@pytest.mark.parametrize("mode", ["bag", "episodes"])
def test_a_full_disk_ends_the_recorder_with_one_sentence(bench, root, tmp_path, mode):
    task = {"task": str(root / "config" / "franka_place" / "task.yaml")}
    bench.start("recorder", {**task, mode: str(tmp_path / "x"), "min_free_mb": 1_000_000})
    status, output = bench.finish("recorder", START_S)
    assert status == 2 and output.count("error: ") == 1 and "MB left; valid is 1000000 MB or more" in output


def test_a_file_that_can_no_longer_be_written_ends_the_recorder_and_what_was_written_stays(bench, root, tmp_path):
    harness = Folder(bench, root, tmp_path)
    harness.event(EpisodeEvent.START, 0)
    assert harness.says("recording episode 0, 2.")
    # The kernel refuses the next write, as that of a full disk.
    size = (tmp_path / "0000" / "0000_0.mcap").stat().st_size
    resource.prlimit(bench.processes["recorder"].pid, resource.RLIMIT_FSIZE, (size + 20_000, size + 20_000))
    assert bench.until(lambda: bench.processes["recorder"].poll() is not None, START_S)
    status, output = bench.finish("recorder", START_S)
    assert status == 2 and output.count("error: ") == 1 and "can no longer be written" in output
    with BagReader(tmp_path / "0000") as reader:
        assert len(list(reader.raw([ARM_STATUS]))) > 80


def test_a_second_recorder_of_the_same_folder_is_refused(bench, root, tmp_path):
    Folder(bench, root, tmp_path)
    first = bench.processes.pop("recorder")
    task = str(root / "config" / "franka_place" / "task.yaml")
    bench.start("recorder", {"task": task, "episodes": str(tmp_path)})
    status, output = bench.finish("recorder", START_S)
    bench.processes["recorder"] = first
    assert status == 2 and f"error: process {first.pid} writes to" in output


@pytest.mark.parametrize("taken", [True, False], ids=["exists", "no_name"])
def test_a_bag_that_cannot_be_made_ends_the_node_with_one_sentence(bench, root, tmp_path, taken):
    bag = tmp_path / "bag"
    if taken:
        bag.mkdir()
        (bag / "metadata.yaml").write_text("somebody's recording")
    Harness(bench, root, bag if taken else "")
    status, output = bench.finish("recorder", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "Traceback" not in output
    assert not taken or (bag / "metadata.yaml").read_text() == "somebody's recording"


class Sensors:
    """Plays an episode that moves: a camera, an arm with six joints, a force sensor and a skin."""

    def __init__(self, node):
        best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
        self._images = node.create_publisher(Image, "/camera/wrist/image", IMAGE)
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._wrenches = node.create_publisher(WrenchStamped, "/ft_sensor/wrench", best_effort)
        self._skins = node.create_publisher(Float32MultiArray, "/skin", STATE)
        self._events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        self._begun_ns = 0
        self.newest_s = 0.0
        self._node = node
        self._timers = [node.create_timer(0.01, self._publish), node.create_timer(0.1, self._publish_image)]

    def end(self):
        """Stop publishing. The recorder waits for the last words of whoever still publishes."""
        for timer in self._timers:
            timer.cancel()
        for publisher in (self._statuses, self._events):
            self._node.destroy_publisher(publisher)

    def mark(self, kind):
        event = EpisodeEvent(kind=kind, success=True, outcome="success")
        event.header.stamp = time_message(time.time_ns())
        self._begun_ns = self._begun_ns or time.time_ns()
        self._events.publish(event)

    def _publish(self):
        stamp = time.time_ns()
        self.newest_s = (stamp - self._begun_ns) / 1e9 if self._begun_ns else 0.0
        status = ArmStatus(gripper_width=0.04, reference_gripper=0.04)
        status.reference.position.x, status.reference.orientation.w = 0.1 * self.newest_s, 1.0
        status.header.frame_id = "base"
        wrench = WrenchStamped()
        # The force says when it was measured, so that a row tells whether it holds the right one.
        wrench.wrench.force.x, wrench.wrench.force.z = self.newest_s, 1.0
        status.joint_positions = [float(number) for number in range(6)]
        for message in (status, wrench):
            message.header.stamp = time_message(stamp)
        self._statuses.publish(status)
        self._wrenches.publish(wrench)
        self._skins.publish(Float32MultiArray(data=[self.newest_s, 0.5]))

    def _publish_image(self):
        message = Image(**encode_image(np.zeros((4, 5, 3), np.uint8)))
        message.header.stamp = time_message(time.time_ns())
        self._images.publish(message)


def vector(name, size, topic, kind, field):
    source = {"topic": topic, "type": kind, "field": field}
    return {"name": name, "kind": "vector", "shape": [size], "rate_hz": 100, **source}


def test_forces_joints_and_a_skin_of_a_ur_reach_its_data_set(bench, root, tmp_path):
    content = yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text())
    content["observation"] = [
        {"name": "wrist", "kind": "image", "shape": [4, 5, 3]},
        {"name": "joint_positions", "kind": "joints", "shape": [6], "rate_hz": 50},
        vector("force", 3, "/ft_sensor/wrench", "geometry_msgs/msg/WrenchStamped", "wrench.force"),
        vector("touch", 2, "skin", "std_msgs/msg/Float32MultiArray", "data"),
    ]
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(content))
    sensors = Sensors(bench.node)
    bench.start("recorder", {"task": str(file), "bag": str(tmp_path / "bag")})
    names = ("/arm/status", "/ft_sensor/wrench", "/skin", "/camera/wrist/image", "/episode/event")
    assert bench.until(lambda: all(bench.node.count_subscribers(name) for name in names), START_S)
    sensors.mark(EpisodeEvent.START)
    assert bench.until(lambda: sensors.newest_s > 3.0, START_S)
    sensors.mark(EpisodeEvent.END)
    assert bench.until(lambda: sensors.newest_s > 3.3, START_S)
    sensors.end()
    bench.processes["recorder"].send_signal(signal.SIGTERM)
    status, output = bench.finish("recorder", START_S)
    assert status == 0, output
    task = load_task(file)
    dataset = build_dataset([tmp_path / "bag"], task)
    dataset.validate(task)
    assert dataset.rows > 15
    begun_ns = dataset.stamps_ns - dataset.observations["force"][:, 0] * 1e9
    # The force of each row was measured within a period of its frames, and so was the touch, which has no header.
    assert np.ptp(begun_ns) < 0.1e9
    assert np.ptp(dataset.stamps_ns - dataset.observations["touch"][:, 0] * 1e9) < 0.15e9
    assert (dataset.observations["force"][:, 1:] == [0, 1]).all() and (dataset.observations["touch"][:, 1] == 0.5).all()
    assert (dataset.observations["joint_positions"] == np.arange(6)).all()


def test_a_vector_whose_message_does_not_exist_ends_the_recorder_with_one_sentence(bench, root, tmp_path):
    content = yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text())
    content["observation"].append(vector("force", 3, "ft", "ft_msgs/msg/Ft", "f"))
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(content))
    bench.start("recorder", {"task": str(tmp_path / "task.yaml"), "bag": str(tmp_path / "bag")})
    status, output = bench.finish("recorder", START_S)
    assert status == 2 and "error: message type 'ft_msgs/msg/Ft' is not installed" in output

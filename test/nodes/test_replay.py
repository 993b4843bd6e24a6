"""The same decisions live, in lockstep, and through the nodes of a replay: bit for bit, from a real bag."""

from __future__ import annotations

import json
import signal
import time

import numpy as np
import pytest
import yaml
from policy.remote.served import holding, remote_bundle, talking
from qos import EVERY_STATE, IMAGE, STATE
from rclpy.qos import DurabilityPolicy, QoSProfile
from recording.conftest import TASK as SMALL
from recording.conftest import make_run  # noqa: F401
from ros_bench import Bench
from ros_domain import enter_domain
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from tiny_bundle import make_tiny_bundle

from bid_msgs.msg import ActionChunk, ArmStatus, Decision
from bid_ros.cameras.image import encode_image
from bid_ros.core.task import load_task, parse_task
from bid_ros.core.topics import INSTRUCTION
from bid_ros.nodes.ros_messages import header, pose_message, time_message
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.recording.reader import BagReader
from bid_ros.replay.lockstep import Changes, lockstep_decider, replay
from bid_ros.replay.parity import Parity
from bid_ros.system.folder import find_system

START_S = 60.0
SEED = 11
TASK_RATE_HZ = 10.0
AS_RECORDED = Changes()
OF_THE_BAG = {"robot": "", "frame_prefix": ""}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
IN_REPLAY = ("-r", "__ns:=/replay", "-r", "/clock:=clock")


class Live:
    """A camera and an arm whose every message differs, the policy that decides on them, and the recorder."""

    def __init__(self, bench, task_file, bundle, bag, rate_hz=TASK_RATE_HZ):
        self.bench = bench
        self._rate_hz = rate_hz
        self.decisions: list[Decision] = []
        self.looks = 0
        self._rng = np.random.default_rng(5)
        node = bench.node
        self._images = [
            node.create_publisher(Image, f"/camera/{name}/image", IMAGE) for name in ("third_person", "wrist")
        ]
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        node.create_subscription(Decision, "/policy/decision", self.decisions.append, EVERY_STATE)
        self._timers = [node.create_timer(1 / rate_hz, self._look), node.create_timer(0.02, self._feel)]
        task = {"task": str(task_file)}
        policy = {"bundle": str(bundle), "samples": 8, "runtime": "onnx", "max_late_ms": 90.0, "budget_ms": 0.0}
        bench.start("recorder", {**task, "bag": str(bag)})
        bench.start("policy", {**task, **policy, "seed": SEED, "decision_rate_hz": rate_hz})

    def _look(self):
        self.looks += 1
        stamp = time.time_ns()
        for publisher in self._images:
            message = Image(**encode_image(self._rng.integers(0, 256, (96, 96, 3), np.uint8)))
            message.header.stamp = time_message(stamp)
            publisher.publish(message)

    def _feel(self):
        status = ArmStatus(header=header(time.time_ns(), "base"), gripper_width=0.04, joint_positions=[0.1] * 7)
        place = [0.5, 0.0, 0.3] + 0.05 * self._rng.standard_normal(3)
        status.tool = pose_message(place, [1.0, 0.0, 0.0, 0.0])
        self._statuses.publish(status)

    def record(self, decisions):
        """Make that many decisions in each of two grants, and end as a person does."""
        sources = (*self._images, self._statuses)
        assert self.bench.until(lambda: all(item.get_subscription_count() > 1 for item in sources), START_S)
        # A decision also takes what was seen a step of the task before: the recorder must have that.
        looks, enough = self.looks, int(3 * self._rate_hz / TASK_RATE_HZ)
        assert self.bench.until(lambda: self.looks > looks + enough, START_S)
        for wanted in (decisions, 2 * decisions):
            self.bench.grant("policy")
            assert self.bench.until(lambda wanted=wanted: len(self.decisions) >= wanted, START_S)
            self.bench.grant()
            known = len(self.decisions)
            self.bench.until(lambda known=known: len(self.decisions) > known + 1, 0.5)
        for name in ("policy", "recorder"):
            self.bench.processes[name].send_signal(signal.SIGTERM)
            status, output = self.bench.finish(name, START_S)
            assert status == 0, output
        for timer in self._timers:
            self.bench.node.destroy_timer(timer)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return the task's file, the bundle and a bag of a live policy, and the decisions that were heard."""
    folder = tmp_path_factory.mktemp("recorded")
    file = find_system("franka_place").file("task.yaml")
    bundle = make_tiny_bundle(folder / "bundle", load_task(file))
    with pytest.MonkeyPatch.context() as patch:
        enter_domain(patch)
        bench = Bench(folder)
        live = Live(bench, file, bundle, folder / "bag")
        live.record(6)
        bench.close()
    return file, bundle, folder / "bag", live.decisions


def in_lockstep(file, folder, bag, changes=AS_RECORDED):
    task = load_task(file)
    bundle, parity = load_bundle(folder, task), Parity()
    decider = lockstep_decider(task, bundle, load_policy(bundle, task, "onnx"), ("bid", 16, 1, 0), changes)
    with BagReader(bag) as reader:
        records = [record for _, record in replay(reader, task, decider, parity)]
    return parity, records


def test_decisions_between_the_steps_of_the_task_are_made_again_as_they_were(bench, tmp_path):
    file = find_system("franka_place").file("task.yaml")
    bundle = make_tiny_bundle(tmp_path / "bundle", load_task(file))
    live = Live(bench, file, bundle, tmp_path / "bag", rate_hz=30.0)
    live.record(12)
    parity, _ = in_lockstep(file, bundle, tmp_path / "bag")
    assert parity.exact and parity.total.decisions == len(live.decisions), parity
    nearest = in_lockstep(file, bundle, tmp_path / "bag", Changes(decoder="bid:memory=nearest"))[0].total
    assert nearest.observations == len(live.decisions) and nearest.same < len(live.decisions)


def test_live_lockstep_and_nodes_make_the_same_observations_and_decisions(recorded, bench, tmp_path):
    file, bundle, bag, live = recorded
    parity, records = in_lockstep(file, bundle, bag)
    assert parity.exact, parity
    assert parity.total.decisions == len(live) and len(parity.streams) == 2
    selected = {tuple(np.asarray(message.selected, np.float32)) for message in live}
    assert {tuple(np.float32(record.choice.actions).ravel()) for record in records} == selected
    assert len({message.observation_digest for message in live}) == len(live), "each observation differs"
    for changes in (Changes(seed=SEED + 1), Changes(decoder="ema"), Changes(samples=2)):
        other = in_lockstep(file, bundle, bag, changes)[0].total
        assert other.observations == len(live) and other.same < len(live), changes

    again, chunks = [], []
    deep = QoSProfile(depth=100)
    bench.node.create_subscription(Decision, "/replay/policy/decision", again.append, deep)
    bench.node.create_subscription(ActionChunk, "/policy/chunk", chunks.append, deep)
    task, out = {"task": str(file)}, tmp_path / "out"
    policy = {"bundle": str(bundle), "samples": 16, "runtime": "onnx", "use_sim_time": True, **OF_THE_BAG}
    bench.start("replay_policy", {**task, **policy}, *IN_REPLAY)
    assert bench.until(lambda: bench.node.count_publishers("/replay/policy/decision"), START_S)
    bench.start("replay", {**task, "bag": str(bag), "speed": 0.0, "out": str(out), **OF_THE_BAG}, *IN_REPLAY)
    bench.until(lambda: len(again) >= len(live), START_S)
    status, output = bench.finish("replay", START_S)
    assert status == 0, output
    counts = json.loads((out / "replay.json").read_text())
    assert counts["exact"] and counts["same"] == counts["observations"] == len(live), (counts, output)
    assert [message.observation_digest for message in again] == [message.observation_digest for message in live]
    assert [bytes(message.strong) for message in again] == [bytes(message.strong) for message in live]
    assert {(message.seed, message.decoder) for message in again} == {(SEED, "bid")}
    assert [message.samples for message in again] == [message.samples for message in live]
    assert max(message.samples for message in live) == 8, "of those that safety would refuse there is none"
    assert not chunks, "nothing is published where a live system listens"


def test_a_replay_that_stands_goes_on_step_by_step(recorded, bench, tmp_path):
    file, bundle, bag, live = recorded
    again, clocks = [], []
    deep = QoSProfile(depth=100)
    bench.node.create_subscription(Decision, "/replay/policy/decision", again.append, deep)
    bench.node.create_subscription(Clock, "/replay/clock", clocks.append, deep)
    task = {"task": str(file)}
    policy = {"bundle": str(bundle), "runtime": "onnx", "use_sim_time": True, **OF_THE_BAG}
    bench.start("replay_policy", {**task, **policy}, *IN_REPLAY)
    assert bench.until(lambda: bench.node.count_publishers("/replay/policy/decision"), START_S)
    parameters = {"bag": str(bag), "speed": 0.0, "paused": True, "out": str(tmp_path / "out"), **OF_THE_BAG}
    bench.start("replay", {**task, **parameters}, *IN_REPLAY)
    step = bench.node.create_client(Trigger, "/replay/replay/step")
    for count in (1, 2, 3):
        assert bench.until(step.service_is_ready, START_S)
        answer = step.call_async(Trigger.Request())
        assert bench.until(answer.done, START_S) and answer.result().success
        assert bench.until(lambda count=count: len(again) >= count, START_S)
    assert not bench.until(lambda: len(again) > 3, 0.5)
    play = bench.node.create_client(SetBool, "/replay/replay/pause")
    assert bench.until(play.service_is_ready, START_S)
    play.call_async(SetBool.Request(data=False))
    status, output = bench.finish("replay", START_S)
    assert status == 0, output
    assert json.loads((tmp_path / "out" / "replay.json").read_text())["same"] == len(live)
    with BagReader(bag) as reader:
        begin, end = reader.span_ns
    times = [message.clock.sec * 10**9 + message.clock.nanosec for message in clocks]
    assert times and begin <= times[0] <= times[-1] <= end and times == sorted(times)


def test_the_nodes_ask_with_the_text_that_was_recorded(make_run, bench, tmp_path):  # noqa: F811
    file, task, asked, told = tmp_path / "task.yaml", parse_task(SMALL), [], []
    file.write_text(yaml.safe_dump(SMALL))
    run, begin = make_run(episodes=2), 1_700_000_000 * 10**9
    run.items += [(begin - 5, INSTRUCTION, String(data="stack it"))]
    run.items += [(begin + 5 * 10**9 + 5, INSTRUCTION, String(data="drop it"))]

    bench.node.create_subscription(String, "/replay/policy/instruction", lambda text: told.append(text.data), LATCHED)
    with talking(holding(task, asked)) as address:
        remote_bundle(tmp_path / "pi", task, address, prompt="place it", timeout_ms=5000.0)
        policy = {"bundle": str(tmp_path / "pi"), "samples": 1, "decoder": "vanilla", "use_sim_time": True}
        bench.start("replay_policy", {"task": str(file), **policy, **OF_THE_BAG}, *IN_REPLAY)
        assert bench.until(lambda: bench.node.count_publishers("/replay/policy/decision"), START_S)
        player = {"task": str(file), "bag": str(run.write(tmp_path / "bag")), "speed": 0.0, **OF_THE_BAG}
        bench.start("replay", player, *IN_REPLAY)
        assert bench.until(lambda: bench.processes["replay"].poll() is not None, START_S)
        status, output = bench.finish("replay", START_S)
        assert status == 0, output
    texts = [text for text in asked if text != "place it"]  # before the first decision it is the bundle's
    assert texts == ["stack it"] * 20 + ["drop it"] * 20
    assert told[-2:] == ["stack it", "drop it"]


def test_a_remapping_of_another_form_ends_the_replay_with_one_sentence(bench, root):
    task = {"task": str(root / "config" / "ur5_pick" / "task.yaml")}
    bench.start("replay", {**task, "bag": "bag", "remapped": ["nothing"]}, *IN_REPLAY)
    status, output = bench.finish("replay", START_S)
    assert status == 2 and "remapping 'nothing' has an unknown form" in output

"""The policy node as a real process, with a real (tiny) bundle, on images and arm states that the test publishes."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from niceness import may_raise
from qos import COMMAND, EVERY_COMMAND, EVERY_STATE, IMAGE, STATE
from rcl_interfaces.srv import SetParameters
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import Image
from tiny_bundle import SPREADS, make_tiny_bundle

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Decision, Heartbeat
from bid_ros.cameras.image import encode_image
from bid_ros.control.slowing import Pace
from bid_ros.core.feature import Feature
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.nodes.base import DECISION_PRIORITY
from bid_ros.nodes.policy_report import limit_samples
from bid_ros.nodes.ros_messages import (
    chunk_from_message,
    chunk_to_message,
    header,
    pose_message,
    time_message,
)
from bid_ros.policy.budget import SampleBudget

START_S = 60.0
SAMPLES = 8
TOOL = (0.5, 0.0, 0.3)
HOUR_NS = 3600 * 1_000_000_000


class Harness:
    """Plays cameras, arm and episode runner for the policy node."""

    def __init__(self, bench, root, bundle, images_hz=10, **parameters):
        self.bench = bench
        self.chunks: list[ChunkMessage] = []
        self.decisions: list[Decision] = []
        self.image_stamps: list[int] = []
        self.cameras_on = self.arm_on = True
        self.spoil = ""
        self.position, self.joints = TOOL, 7
        node = bench.node
        file = root / "config" / "franka_place" / "task.yaml"
        if bundle.name == "bundle":  # an untrained one, whose samples turn and grip as they like
            shutil.copytree(file.parent, bundle.with_name("system"))
            file = bundle.with_name("system") / "task.yaml"
            wide = "limits:\n  max_gripper_rate: 100.0\n"
            text = re.sub(r"max_(turn_rate|turn_acceleration): .*", r"max_\1: 1.0e+4", file.read_text())
            file.write_text(re.sub(r"max_tilt: .*", "max_tilt: 3.2", text).replace("limits:\n", wide, 1))
        names = ("third_person", "wrist")
        self._images = [node.create_publisher(Image, f"/camera/{name}/image", IMAGE) for name in names]
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        node.create_subscription(ChunkMessage, "/policy/chunk", self.chunks.append, EVERY_COMMAND)
        node.create_subscription(Decision, "/policy/decision", self.decisions.append, EVERY_STATE)
        node.create_timer(1 / images_hz, self._publish_images)
        node.create_timer(0.02, self._publish_arm)
        bench.start(
            "policy",
            {
                "task": str(file),
                "bundle": str(bundle),
                "samples": SAMPLES,
                "runtime": "onnx",
                # A busy computer delays a decision; that is not what these tests are about.
                "max_late_ms": 90.0,
                "budget_ms": 0.0,
                **parameters,
            },
        )

    def _publish_images(self):
        if not self.cameras_on:
            return
        stamp = time.time_ns()
        self.image_stamps.append(stamp)
        for publisher in self._images:
            size = 48 if self.spoil == "size" else 96
            message = Image(**encode_image(np.full((size, size, 3), 120, np.uint8)))
            message.encoding = "16UC1" if self.spoil == "encoding" else message.encoding
            message.header.stamp = time_message(stamp + HOUR_NS * (self.spoil == "clock"))
            publisher.publish(message)

    def _publish_arm(self):
        if not self.arm_on:
            return
        stamp = time.time_ns()
        status = ArmStatus(header=header(stamp, "base"), gripper_width=0.04, joint_positions=[0.1] * self.joints)
        status.tool = pose_message(self.position, [1.0, 0.0, 0.0, 0.0])
        self._statuses.publish(status)

    def ready(self) -> bool:
        """True once the node is up, idle, and has had images."""
        return self.bench.until(lambda: self._images[0].get_subscription_count() > 0, START_S)

    def until_decisions(self, count: int) -> bool:
        return self.bench.until(lambda: len(self.decisions) >= count and len(self.chunks) >= 1, START_S)

    def frames_without_decision(self, count: int = 5):
        """Publish frames and assert that nothing was decided on those after the first two."""
        # What was under way when the node was told may still arrive; two frames later nothing may.
        until = len(self.image_stamps) + 2
        assert self.bench.until(lambda: len(self.image_stamps) >= until)
        self.decisions.clear()
        assert self.bench.until(lambda: len(self.image_stamps) >= until + count)
        assert not self.decisions


@pytest.fixture(params=[True, False], ids=["weak", "no_weak"])
def weak(request):
    return request.param


def test_decides_ten_times_a_second_while_it_is_granted(bench, root, tmp_path, task, weak):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task, weak=weak))
    assert harness.ready()
    bench.grant("episode")
    harness.frames_without_decision()
    bench.grant("policy", robot="other")
    harness.frames_without_decision()
    bench.grant("policy")
    assert harness.until_decisions(10)
    decisions, size = harness.decisions, task.horizon * task.action_dim
    assert {decision.samples for decision in decisions} == {SAMPLES}
    assert {decision.weak_samples for decision in decisions} == {SAMPLES if weak else 0}
    assert {len(decision.strong) for decision in decisions} == {SAMPLES * size}
    assert {len(decision.weak) for decision in decisions} == {SAMPLES * size if weak else 0}
    assert {len(decision.selected) for decision in decisions} == {size}
    assert {len(decision.total) for decision in decisions} == {SAMPLES}
    assert all(decision.previous_steps * task.action_dim == len(decision.previous) for decision in decisions)
    assert decisions[0].previous_steps == 0 and decisions[1].previous_steps > 0
    stamps = [stamp_ns(decision) for decision in decisions]
    assert set(stamps) <= set(harness.image_stamps)
    assert all(after > before for before, after in pairwise(stamps))
    gaps = np.diff(stamps) / 1e9
    assert np.median(gaps) == pytest.approx(0.1, abs=0.02)


def test_decides_at_the_rate_of_faster_cameras_on_the_grid_of_the_task(bench, root, tmp_path, task):
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    harness = Harness(bench, root, bundle, images_hz=30, decision_rate_hz=30.0, decoder="bid")
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(20)
    assert {decision.decoder for decision in harness.decisions} == {"bid:memory=between"}
    assert {stamp_to_ns(chunk.dt) for chunk in harness.chunks} == {task.dt_ns}
    assert np.median(np.diff([stamp_ns(decision) for decision in harness.decisions])) / 1e9 == pytest.approx(
        1 / 30, abs=0.01
    )
    published, nearest = np.array(harness.image_stamps), []
    for decision in harness.decisions[6:]:
        observed = np.array([stamp_to_ns(at) for at in decision.observed_stamps]).reshape(len(decision.observed), 2)
        before, now = observed[list(decision.observed).index("wrist")]
        assert {before, now} <= set(harness.image_stamps)
        nearest.append(published[np.abs(published - (now - task.dt_ns)).argmin()] == before)
    assert np.mean(nearest) > 0.5, "one step of the task earlier; a busy computer loses images"


def test_a_bundle_that_wants_more_steps_gets_them(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task, steps=5))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    decision = harness.decisions[-1]
    stamps = np.array([stamp_to_ns(at) for at in decision.observed_stamps]).reshape(len(decision.observed), 5)
    assert (decision.current_step, decision.steps) == (1, 16)
    assert (np.diff(stamps[list(decision.observed).index("tool_position")]) >= 0).all()


def test_it_measures_its_delay_and_goes_before_other_programs(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task), decoder="bid+delay")
    said: dict[str, str] = {}
    bench.node.create_subscription(
        DiagnosticArray,
        "/diagnostics",
        lambda message: said.update((pair.key, pair.value) for item in message.status for pair in item.values),
        10,
    )
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    assert bench.until(lambda: int(said.get("delay_steps", 0)) >= 1), "a decision takes some time"
    if may_raise(DECISION_PRIORITY):
        own, policy = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (os.getpid(), bench.processes["policy"].pid))
        assert policy <= own - DECISION_PRIORITY


@pytest.mark.parametrize(("budget_ms", "samples"), [(1000.0, SAMPLES), (0.001, 1)])
def test_as_many_samples_are_drawn_as_fit_the_budget(bench, root, tmp_path, task, budget_ms, samples):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task), budget_ms=budget_ms)
    said: list[str] = []
    bench.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda message: said.extend(item.message for item in message.status), 10
    )
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    assert {decision.samples for decision in harness.decisions} == {samples}
    if samples == 1:
        assert bench.until(lambda: any("decisions of 1 sample take longer" in text for text in said))


def test_a_number_of_samples_that_comes_back_is_said_too():
    """rclpy refuses a line of code that warns first and informs later."""
    maker, budget = SimpleNamespace(limit=None), SampleBudget(16, 45_000_000)
    for samples in (8, 16, 8, 16):
        budget.samples = samples
        limit_samples(get_logger("policy"), maker, budget, 45.0)
        assert maker.limit == samples


def test_a_chunk_carries_the_stamp_of_the_newest_image_and_what_was_selected(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    bench.grant()
    selected = {stamp_ns(item): item.selected for item in harness.decisions}
    chunk = next(chunk for chunk in reversed(harness.chunks) if stamp_ns(chunk) in selected)
    stamp = stamp_ns(chunk)
    assert (chunk.steps, chunk.dims, chunk.source) == (task.horizon - 1, task.action_dim, "policy")
    assert chunk.header.frame_id == task.base_frame
    whole = np.array(selected[stamp]).reshape(task.horizon, task.action_dim)
    rows = np.array(chunk.actions).reshape(chunk.steps, chunk.dims)
    np.testing.assert_allclose(rows[:, :3], whole[task.observation_steps - 1 :, :3], atol=1e-6)
    # The tiny policy holds the tool where it is: a chunk in another frame or unit would be far away.
    np.testing.assert_allclose(rows[:, :3], np.tile(TOOL, (chunk.steps, 1)), atol=0.1)


def test_the_next_decision_coheres_with_what_safety_made_of_the_last_one(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    publisher = bench.node.create_publisher(ChunkMessage, "/safety/chunk", COMMAND)
    made: dict[int, np.ndarray] = {}

    def slow(message):
        chunk = chunk_from_message(message, task)
        pace = Pace(0, chunk.horizon - 1, 2 * chunk.horizon)
        rows = pace.slowed(chunk.actions, task, 2 * chunk.horizon + 1)
        made[chunk.stamp_ns] = rows
        publisher.publish(chunk_to_message(dataclasses.replace(chunk, actions=rows, scale=pace.scale), task, ""))

    bench.node.create_subscription(ChunkMessage, "/policy/chunk", slow, EVERY_COMMAND)
    assert harness.ready() and bench.until(lambda: publisher.get_subscription_count() > 0)
    bench.grant("policy")

    def cohering():
        """Decisions one step after one that was slowed, and whether they compare with that."""
        found = []
        for before, after in pairwise(harness.decisions):
            rows, steps = made.get(stamp_ns(before)), round((stamp_ns(after) - stamp_ns(before)) / 1e8)
            if rows is not None and steps == 1 and after.previous_steps:
                previous = np.reshape(after.previous, (after.previous_steps, -1))
                found.append(np.abs(previous[:, :3] - rows[: len(previous), :3]).max() < 1e-5)
        return found

    assert bench.until(lambda: sum(cohering()) >= 3, START_S), cohering()


@pytest.mark.parametrize("ended", ["released", "handed over", "not renewed"])
def test_the_end_of_a_grant_ends_the_decisions_and_the_next_one_remembers_nothing(bench, root, tmp_path, task, ended):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(5)
    if ended == "not renewed":
        bench.stop_granting()
    else:
        bench.grant(*(["episode"] if ended == "handed over" else []))
    until = len(harness.image_stamps) + 6  # what was given last is over by then
    assert bench.until(lambda: len(harness.image_stamps) >= until)
    harness.frames_without_decision()
    bench.grant("policy")
    assert harness.until_decisions(2)
    assert [decision.previous_steps > 0 for decision in harness.decisions[:2]] == [False, True]


@pytest.mark.parametrize("lost", ["cameras_on", "arm_on"])
def test_without_new_observations_there_are_no_new_chunks(bench, root, tmp_path, task, lost):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    bench.grant("policy")
    assert harness.until_decisions(3)
    setattr(harness, lost, False)
    count = [-1]

    def settled() -> bool:
        """No decision for ten periods."""
        if len(harness.decisions) != count[0]:
            count[:], harness.quiet_since = [len(harness.decisions)], time.monotonic()
        return time.monotonic() - harness.quiet_since > 1.0

    assert bench.until(settled, START_S)
    setattr(harness, lost, True)
    assert harness.until_decisions(count[0] + 1), "the node did not go on when the observations came back"


def test_a_pose_that_is_not_finite_is_refused_and_the_node_lives_on(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    bench.grant("policy")
    assert harness.until_decisions(3)
    harness.position = (float("nan"), 0.0, 0.3)
    harness.frames_without_decision()
    harness.position = TOOL
    assert harness.until_decisions(3)
    assert np.isfinite(harness.decisions[-1].strong).all()
    assert bench.processes["policy"].poll() is None


def no_folder(folder, task):
    return folder


def damaged(folder, task):
    make_tiny_bundle(folder, task)
    graph = folder / "strong_denoiser.onnx"
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 0xFF
    graph.write_bytes(bytes(data))
    return folder


def incomplete(folder, task):
    make_tiny_bundle(folder, task)
    (folder / "weak_encoder.onnx").unlink()
    return folder


def of_another_task(folder, task):
    return make_tiny_bundle(folder, dataclasses.replace(task, name="pour_tea"))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (no_folder, "does not exist"),
        (damaged, "strong_denoiser.onnx"),
        (incomplete, "missing"),
        (of_another_task, "pour_tea"),
    ],
)
def test_a_bad_bundle_ends_the_node_with_one_sentence(bench, root, tmp_path, task, make, word):
    Harness(bench, root, make(tmp_path / "bundle", task))
    status, output = bench.finish("policy", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and word in output and "Traceback" not in output


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"decoder": "best"}, "'best'"),
        ({"decision_rate_hz": 25.0}, "decision_rate_hz is 25; valid are multiples"),
        ({"samples": 0}, "samples"),
        ({"samples": "many"}, "samples"),
        ({"runtime": "cuda"}, "runtime 'cuda' cannot be used"),
    ],
)
def test_a_bad_parameter_ends_the_node_with_one_sentence(bench, root, tmp_path, task, parameters, word):
    Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task), **parameters)
    status, output = bench.finish("policy", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and word in output and "Traceback" not in output


def test_the_policy_starts_on_another_runtime_if_it_was_told_to(bench, root, tmp_path, task):
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    harness = Harness(bench, root, bundle, runtime="tensorrt:fp16", fallback_runtime="onnx")
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(2)
    bench.processes["policy"].terminate()
    _, output = bench.finish("policy")
    assert output.count("runtime 'tensorrt:fp16' cannot be used") == 1
    assert "the policy starts on runtime 'onnx'" in output


def test_a_policy_that_predicts_nan_ends_the_node_so_that_safety_stops_the_arm(
    bench, root, tmp_path, task, monkeypatch
):
    monkeypatch.setitem(SPREADS, "strong", float("nan"))
    Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    bench.grant("policy")
    assert bench.until(lambda: bench.processes["policy"].poll() is not None, START_S)
    status, output = bench.finish("policy")
    assert status in (1, 2), "the end of a node that cannot go on looks like a success"
    assert "finite" in output


def test_neither_policy_nor_safety_subscribes_to_ground_truth(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    bench.start("safety", {"task": str(root / "config" / "franka_place" / "task.yaml"), "twin": True})
    assert harness.ready()

    def subscribed(name: str) -> set[str]:
        if (name, "/") not in bench.node.get_node_names_and_namespaces():
            return set()
        return {topic for topic, _ in bench.node.get_subscriber_names_and_types_by_node(name, "/")}

    # The last subscription of each node is there, so all are.
    assert bench.until(lambda: "/grant" in subscribed("policy"), START_S)
    assert bench.until(lambda: {"/policy/chunk", "/heartbeat"} <= subscribed("safety"), START_S)
    for name in ("policy", "safety"):
        assert not {topic for topic in subscribed(name) if topic.startswith(("/ground_truth", "/twin"))}


def set_parameters(bench, **values):
    """Set parameters of the policy node as `ros2 param set` does; return the results."""
    client = bench.node.create_client(SetParameters, "/policy/set_parameters")
    assert bench.until(client.service_is_ready, START_S)
    asked = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    future = client.call_async(SetParameters.Request(parameters=asked))
    assert bench.until(future.done)
    return future.result().results


def test_decoder_and_samples_change_between_two_episodes(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    assert {item.decoder for item in harness.decisions} == {"bid"}
    assert set_parameters(bench, decoder="vanilla")[0].successful and set_parameters(bench, samples=3)[0].successful
    before = len(harness.decisions)
    assert harness.until_decisions(before + 3)
    assert harness.decisions[-1].decoder == "bid", "the decoder changed while the arm moved"

    def next_episode() -> Decision:
        bench.grant()
        harness.frames_without_decision()
        bench.grant("policy")
        assert bench.until(lambda: harness.decisions)
        return harness.decisions[0]

    first = next_episode()
    assert (first.decoder, first.samples) == ("vanilla", 1)
    assert set_parameters(bench, decoder="bid:terms=backward,variant=paper")[0].successful
    first = next_episode()
    assert (first.decoder, first.samples, first.previous_steps) == ("bid:variant=paper,terms=backward", 3, 0)
    sequences = [chunk.sequence for chunk in harness.chunks]
    assert sequences == sorted(set(sequences)), "the numbers of the chunks began anew"


def test_the_heartbeat_goes_on_while_another_decoder_is_tried(bench, root):
    """The shipped policy tries N and the weak network for seconds; a heartbeat that paused was a safety stop."""
    given = {"decoder": "vanilla", "samples": 16, "budget_ms": 45.0, "runtime": "auto"}
    harness = Harness(bench, root, root / "models" / "franka_place", **given)
    ages: list[float] = []
    keep = lambda message: ages.append(message.work_age) if message.node == "policy" else None  # noqa: E731
    bench.node.create_subscription(Heartbeat, "/heartbeat", keep, EVERY_STATE)
    assert harness.ready()
    assert set_parameters(bench, decoder="bid")[0].successful
    assert bench.until(lambda: ages and max(ages) > 0.31), "no heartbeat after 0.3 s of the same work"
    bench.grant("policy")
    assert harness.until_decisions(1) and harness.decisions[-1].decoder == "bid"


def test_a_change_of_the_decoder_is_told_until_the_policy_uses_it(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    told: list[tuple[str, str]] = []

    def keep(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith("policy"):
                values = {item.key: item.value for item in status.values}
                told.append((values["decoder"], values.get("next_decoder", "")))

    bench.node.create_subscription(DiagnosticArray, "/diagnostics", keep, EVERY_STATE)
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(1)
    assert set_parameters(bench, decoder="vanilla")[0].successful
    assert bench.until(lambda: told and told[-1] == ("bid", "vanilla")), told
    before = len(harness.decisions)
    assert harness.until_decisions(before + 2) and harness.decisions[-1].decoder == "bid"
    bench.grant()
    assert bench.until(lambda: told[-1] == ("vanilla", "")), told


def test_parameters_that_cannot_change_say_so(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(1)
    (unknown,) = set_parameters(bench, decoder="best")
    assert not unknown.successful and "'best'" in unknown.reason and "valid are" in unknown.reason
    (former,) = set_parameters(bench, decoder="bid-paper")
    assert not former.successful and "'bid-paper' is now written 'bid:variant=paper'" in former.reason
    (guided,) = set_parameters(bench, decoder="rtc")
    assert not guided.successful and "needs the network's gradient, which runtime 'onnx' has not" in guided.reason
    (many,) = set_parameters(bench, samples=1000)
    assert not many.successful and many.reason
    for name in ("seed", "action_horizon"):
        (fixed,) = set_parameters(bench, **{name: 3})
        assert not fixed.successful and "read-only" in fixed.reason
    before = len(harness.decisions)
    assert harness.until_decisions(before + 2) and harness.decisions[-1].decoder == "bid"


def test_joints_and_forces_of_any_publisher_feed_decisions_and_others_are_refused(bench, root, tmp_path, task):
    force = {"topic": "/ft_sensor/wrench", "type": "geometry_msgs/msg/WrenchStamped", "field": "wrench.force"}
    sensed = (Feature("joint_positions", "joints", (6,), rate_hz=50), Feature("force", "vector", (3,), **force))
    task = dataclasses.replace(task, observation=(*task.observation, *sensed))
    content = yaml.safe_load((root / "config" / "franka_place" / "task.yaml").read_text())
    content["observation"] += [{"name": "joint_positions", "kind": "joints", "shape": [6], "rate_hz": 50}]
    content["observation"] += [{"name": "force", "kind": "vector", "shape": [3], **force}]
    file = tmp_path / "config" / "franka_place" / "task.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(content))
    best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    wrenches = bench.node.create_publisher(WrenchStamped, "/ft_sensor/wrench", best_effort)
    bench.node.create_timer(0.02, lambda: wrenches.publish(WrenchStamped(header=header(time.time_ns()))))
    harness = Harness(bench, tmp_path, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    harness.frames_without_decision()
    harness.joints = 6
    assert harness.until_decisions(3)
    process = bench.processes["policy"]
    process.terminate()
    _, output = bench.finish("policy")
    assert "observation 'joint_positions' is [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]; valid are 6 finite numbers" in output


@pytest.mark.parametrize("kind", ["size", "encoding", "clock"])
def test_images_that_cannot_be_used_are_named_in_the_diagnostics(bench, root, tmp_path, task, kind):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    said: list[str] = []
    bench.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda item: said.append(item.status[0].message), STATE
    )
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(3)
    harness.spoil = kind
    words = {
        "size": "is 48x48; the task says",
        "encoding": "16UC1",
        "clock": "3600.0 s ahead of this computer's clock",
    }
    assert bench.until(lambda: said and words[kind] in said[-1], START_S), said[-3:]
    assert said[-1].startswith("images of ")
    harness.frames_without_decision()
    harness.spoil = ""
    assert harness.until_decisions(3), "it did not go on when the images could be used again"

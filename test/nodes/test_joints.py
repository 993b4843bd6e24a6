"""Joints all the way, as real processes: a system whose task commands joints, and what its safety node says."""

from __future__ import annotations

import json
import re
import shutil
import time

import numpy as np
import pytest
import yaml
from forked_bid import bid
from qos import COMMAND, EVERY_COMMAND, EVERY_STATE, STATE

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.formats import build_dataset
from bid_ros.nodes.ros_messages import chunk_to_message, header, pose_message
from bid_ros.recording.reader import BagReader
from bid_ros.robots.registry import posed_arm, task_arm
from bid_ros.system.folder import find_system

HOME = np.array([0.0, -0.28278114, 0.0, -2.40004545, 0.0, 2.11726431, np.pi / 4])


@pytest.fixture
def folder(root):
    return root / "config" / "joints" / "franka_place"


@pytest.fixture
def task(folder):
    return load_task(folder / "task.yaml")


@pytest.fixture
def model(folder, task) -> ArmModel:
    found = task_arm(task, find_system(folder).file("robot.yaml"), twin=True)
    assert found is not None
    return found


class Harness:
    """A safety node with the heartbeats and the status of an arm at home that it needs."""

    def __init__(self, bench, folder, task, model):
        self.bench, self.task = bench, task
        self.forwarded: list[ChunkMessage] = []
        self.states: list[SafetyState] = []
        node = bench.node
        place, _ = model.forward(HOME)
        self._tool = pose_message(place, [1.0, 0.0, 0.0, 0.0])
        self._chunks = node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        node.create_subscription(ChunkMessage, "/safety/chunk", self.forwarded.append, EVERY_COMMAND)
        node.create_subscription(SafetyState, "/safety/state", self.states.append, EVERY_STATE)
        node.create_timer(0.03, self._beat)
        bench.grant("policy")
        config = find_system(folder).file("robot.yaml")
        given = {"task": str(folder / "task.yaml"), "arm_config": str(config), "twin": True}
        bench.start("safety", {**given, "required": ["policy"], "settle_s": 0.1})
        assert bench.until(lambda: bool(self.states) and self.states[-1].state == SafetyState.RUNNING)

    def _beat(self):
        self._beats.publish(Heartbeat(node="policy"))
        status = ArmStatus(header=header(time.time_ns(), "base"), tool=self._tool, joint_positions=HOME.tolist())
        self._statuses.publish(status)

    def send(self, joints):
        actions = np.concatenate([joints, np.full((len(joints), 1), 0.04)], axis=1)
        chunk = ActionChunk(time.time_ns(), self.task.dt_ns, actions)
        self._chunks.publish(chunk_to_message(chunk, self.task, ""))


def test_the_safety_node_lets_joints_pass_and_says_which_joint_does_not(bench, folder, tmp_path, task, model):
    shutil.copytree(folder.parents[1] / "franka_place", tmp_path / "franka_place")
    system = shutil.copytree(folder, tmp_path / "joints" / "franka_place")
    file = system / "task.yaml"
    # A joint of the wrist that is too fast turns the tool too fast, too: here it may.
    file.write_text(re.sub(r"max_turn_(rate|acceleration): .*", r"max_turn_\1: 1000.0", file.read_text()))
    harness = Harness(bench, system, task, model)
    slow = HOME + 0.005 * np.arange(15)[:, None]
    assert bench.until(lambda: bool(harness.forwarded), 10.0, each=lambda: harness.send(slow))
    assert list(harness.forwarded[-1].features) == ["joint_positions", "gripper_width"]
    fast = HOME + np.outer(np.minimum(np.arange(15), 2), 0.9 * (np.arange(7) == 6))
    stopped = lambda: harness.states[-1].state == SafetyState.STOPPED  # noqa: E731
    assert bench.until(stopped, 10.0, each=lambda: harness.send(fast))
    state = harness.states[-1]
    assert state.rule == "joint_speed", state.reason
    assert "joint 7 (fr3_joint7) turns at 9.000 rad/s" in state.reason and "the limit is 2.000 rad/s" in state.reason
    assert (state.measured, state.limit) == (pytest.approx(9.0), 2.0)


def test_the_safety_node_judges_the_joints_behind_poses(bench, root):
    folder = root / "config" / "franka_place"
    task = load_task(folder / "task.yaml")
    known = posed_arm(task, find_system(folder).file("robot.yaml"), twin=True)
    harness = Harness(bench, folder, task, known)
    place, rotation = known.forward(HOME)
    resting = np.tile([*place, *matrix_to_6d(rotation)], (15, 1))
    assert bench.until(lambda: bool(harness.forwarded), 10.0, each=lambda: harness.send(resting))
    far = resting.copy()
    far[:, :3] += np.linspace(0, 1, 15)[:, None] * (np.array([0.69, 0.29, 0.59]) - place)
    stopped = lambda: harness.states[-1].state == SafetyState.STOPPED  # noqa: E731
    assert bench.until(stopped, 10.0, each=lambda: harness.send(far))
    assert harness.states[-1].rule in ("reach", "joint_position", "singularity")


def over_ros(source, folder):
    """Copy a system in joints of a UR, and give it to a robot with a ROS driver."""
    shutil.copytree(source, folder)
    for file in ("robot.yaml", "nodes.yaml"):
        shutil.copy(source.parents[1] / "new" / "ros" / file, folder / file)
    task = (folder / "task.yaml").read_text().replace("robot: ur\n", "robot: ros\n")
    task = re.sub(r"(?m)^  min_self_distance: .*\n", "", task)  # the twin's URDF has no collision shapes
    (folder / "task.yaml").write_text(task)
    system = yaml.safe_load((folder / "system.yaml").read_text())
    system["like"] = str(source.parents[1] / "ur5_pick")
    system["policy"]["bundle_task"] = str(source.parents[1] / "ur5_pick" / "task.yaml")
    (folder / "system.yaml").write_text(yaml.safe_dump(system))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("robot", ["ur", "ros"])
def test_a_demonstration_in_joints_succeeds_in_the_twin_and_becomes_data(tmp_path, ros_domain, patient, root, robot):
    folder, out = root / "config" / "joints" / "ur5_pick", tmp_path / "out"
    if robot == "ros":
        folder = over_ros(folder, tmp_path / "over_ros")
    command = f"up {folder} --driver scripted --styles clean --episodes 1 --moving 0 --seed 3 --json --out {out}"
    for _ in range(3):  # a busy computer may hold up the twin for so long that it counts as lost
        done = bid(*command.split(), "--parameters", patient, limit_s=120)
        if "silent" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["successes"] == 1
    data = build_dataset([out / "bag"], load_task(folder / "task.yaml"))
    assert data.actions.shape[1] == 7 and data.observations["joint_positions"].shape[1] == 6
    # What was commanded is what the arm did, a little later.
    off = np.abs(data.actions[:, :6] - data.observations["joint_positions"])
    assert np.median(off) < 0.02


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_policy_that_predicts_joints_places_the_object_in_the_twin(
    tmp_path, ros_domain, patient, folder, task, model
):
    """It placed in 38 of 40 episodes of other seeds, so three in a row fail once in thousands of runs."""
    for seed in (3, 4, 5):
        out = tmp_path / f"out{seed}"
        command = f"up {folder} --episodes 1 --moving 0 --decoder bid --samples 8 --seed {seed} --json --out {out}"
        done = bid(*command.split(), "--parameters", patient, limit_s=100)
        assert done.returncode in (0, 3), done.stderr
        run = json.loads((out / "run.json").read_text())
        if run["successes"]:
            break
    assert run["successes"] == 1, run["results"]
    with BagReader(out / "bag") as reader:
        assert reader.was_complete
        sent = [item.message for item in reader.messages(["/arm/joint_reference"])]
    joints, speeds = (np.array([getattr(item, name) for item in sent]) for name in ("position", "velocity"))
    limits = model.limits.within(task.limits)
    assert (joints >= limits.low).all() and (joints <= limits.high).all()
    assert (np.abs(speeds) <= np.array(limits.speed) + 1e-9).all() and np.abs(speeds).max() > 0.1

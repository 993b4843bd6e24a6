"""The arm node as a real process, with the real franky client, on a twin that is a process of its own."""

from __future__ import annotations

import signal
import subprocess
import time
from itertools import pairwise

import numpy as np
import pytest
from forked_bid import start_bid
from geometry_msgs.msg import PoseStamped
from qos import COMMAND, STATE, TRANSFORMS
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from ur_twin import free_address

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import load_task
from bid_ros.core.topics import STATE_QOS
from bid_ros.nodes.arm_report import joint_messages
from bid_ros.nodes.ros_messages import chunk_to_message, pose_arrays
from bid_ros.nodes.topics import profile
from bid_ros.robots.base import ArmState
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.registry import build_arm
from bid_ros.robots.robotiq.driver import RobotiqConfig
from bid_ros.robots.ur.config import UrConfig
from bid_ros.system.folder import find_system

START_S = 60.0  # twin and arm node start beside whatever else this computer does
STATE_PERIOD_S = 0.02
# How late a state can be told: one period of the status, and one of a computer that runs other tests.
MARGIN_S = 0.1
SPEED = 0.03  # m/s of the chunks that are streamed
LENGTH = 0.2  # m, after which they rest: the arm reaches no further


def arm_parameters(root, address: str, name: str = "franka_place", **changes):
    system = find_system(name)
    return {
        "task": str(system.file("task.yaml")),
        "arm": system.task.robot,
        "arm_config": str(system.file("robot.yaml")),
        "robot_ip": address,
        "twin": True,
        "connect_wait_s": START_S,
        **changes,
    }


class Harness:
    """Plays policy and safety: heartbeats, chunks, and what the arm node says to them."""

    def __init__(self, bench, root, name: str = "franka_place", **changes):
        self.bench = bench
        system = find_system(name)
        task = str(system.file("task.yaml"))
        self.task = load_task(task)
        self.of_task = TaskChunks(self.task, system.arm())  # chunks below are of the tool
        self.alive = {"policy", "safety"}
        self.foreign: set[str] = set()
        self.statuses: list[ArmStatus] = []
        self.tool = None
        self.joints: list[JointState] = []
        self.start = None
        self.started_ns = 0
        self.sent: list[ActionChunk] = []
        self.streaming = False
        self.steps = 5
        node = bench.node
        self._chunks = node.create_publisher(ChunkMessage, "/safety/chunk", COMMAND)
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        self.states = node.create_publisher(SafetyState, "/safety/state", STATE)
        node.create_subscription(ArmStatus, "/arm/status", self.statuses.append, profile(STATE_QOS, 1000))
        node.create_subscription(PoseStamped, "/arm/tool_pose", self._on_pose, STATE)
        node.create_timer(0.05, self._beat)
        node.create_timer(0.1, self._stream)
        self._reset = node.create_client(Trigger, "/arm/reset")
        bench.grant("policy")
        self.address = free_address()
        bench.start("twin", {"task": task, "address": self.address})
        bench.start("arm", arm_parameters(root, self.address, name, **changes))

    def _on_pose(self, message):
        self.tool = pose_arrays(message.pose)

    def _beat(self):
        for name in self.alive:
            self._beats.publish(Heartbeat(node=name, robot="other" if name in self.foreign else ""))

    def _stream(self):
        if self.streaming:
            self.send()

    def send(self, steps: int | None = None):
        """Send the next chunk of a straight line in x that began at the first one."""
        now = time.time_ns()
        if self.start is None:
            self.start, self.started_ns = self.tool, now
            self.of_task.begin(self.statuses[-1].joint_positions, now)
        position, quaternion = self.start
        steps = steps or self.steps
        times = now + self.task.dt_ns * np.arange(steps)
        rows = np.tile([*position, *matrix_to_6d(matrix_from_quaternion(quaternion)), 0.08], (steps, 1))
        rows[:, 0] += np.minimum(SPEED * (times - self.started_ns) / NANOSECONDS, LENGTH)
        chunk = ActionChunk(now, self.task.dt_ns, rows, source="policy", sequence=len(self.sent))
        self.sent.append(chunk)
        made = self.of_task.of(chunk)
        self._chunks.publish(chunk_to_message(made, self.task, "other" if "chunks" in self.foreign else ""))

    def mode(self) -> int:
        return self.statuses[-1].mode if self.statuses else -1

    def until_mode(self, *modes: int, timeout_s: float = 20.0) -> bool:
        return self.bench.until(lambda: self.mode() in modes, timeout_s)

    def track(self, steps: int = 5):
        """Stream until the arm moves."""
        self.steps, self.streaming = steps, True
        assert self.bench.until(self._moving, 20.0), f"the arm does not follow: {self.statuses[-1]}"

    def _moving(self) -> bool:
        return self.mode() == ArmStatus.TRACKING and self.statuses[-1].reference_twist[0] > 0.8 * SPEED

    def first(self, since_ns: int, condition):
        """First status after an instant that meets a condition."""
        return next(s for s in self.statuses if stamp_ns(s) > since_ns and condition(s))

    def hand_over_to_safety(self, root) -> subprocess.Popen[str]:
        """Start a real safety node in place of this one, and wait until the arm has heard it.

        Another listener may hear it earlier, so only the arm can say: from its first chunk on it refuses a reset
        while safety is silent.
        """
        self.alive.remove("safety")
        assert self.bench.until(lambda: not self.reset().success, START_S, each=self.send)
        self.start = None
        for publisher in (self._chunks, self.states):  # the arm obeys one safety node
            self.bench.node.destroy_publisher(publisher)
        self._chunks = self.bench.node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        task = str(root / "config" / "franka_place" / "task.yaml")
        process = self.bench.start("safety", {"task": task, "required": ["policy"]})
        assert self.bench.until(lambda: self.reset().success, START_S)
        return process

    def reset(self) -> Trigger.Response:
        future = self.ask_reset()
        assert self.bench.until(future.done, 20.0)
        return future.result()

    def ask_reset(self) -> Future:
        return self._reset.call_async(Trigger.Request())


def up(bench, root, name: str, **changes) -> Harness:
    harness = Harness(bench, root, name, **changes)
    assert bench.until(lambda: harness.statuses and harness.tool is not None, START_S), "the arm node did not come up"
    return harness


@pytest.fixture
def harness(bench, root):
    return up(bench, root, "franka_place")


def speed(status: ArmStatus) -> float:
    return float(np.linalg.norm(status.reference_twist[:3]))


def stopping(status: ArmStatus) -> bool:
    return status.mode != ArmStatus.TRACKING


def age_s(status: ArmStatus, since_ns: int) -> float:
    return (stamp_ns(status) - since_ns) / NANOSECONDS


def test_follows_chunks_and_stops_by_itself_when_they_cease(harness):
    harness.track()
    assert harness.bench.until(lambda: harness.tool[0][0] - harness.start[0][0] > 0.02, 20.0)
    expected = harness.start[0][0] + SPEED * (time.time_ns() - harness.started_ns) / NANOSECONDS
    assert harness.tool[0][0] == pytest.approx(expected, abs=0.012)
    assert harness.statuses[-1].source == "policy" and harness.statuses[-1].reason == ""
    harness.streaming = False
    chunk = harness.sent[-1]
    assert harness.until_mode(ArmStatus.HOLDING)
    assert age_s(harness.first(chunk.stamp_ns, stopping), chunk.end_ns) <= 0.2 + STATE_PERIOD_S
    last = [status for status in harness.statuses if age_s(status, chunk.end_ns) > -0.15]
    assert speed(last[0]) > 0.5 * SPEED and speed(last[-1]) == 0.0
    assert all(after <= before + 1e-4 for before, after in pairwise(map(speed, last)))
    # Nothing is latched: the next chunk is followed.
    harness.start = None
    harness.track()


@pytest.mark.parametrize("silent", ["policy", "safety"])
def test_silence_of_a_required_node_latches_though_a_chunk_still_covers_now(harness, silent):
    harness.track(steps=15)
    harness.alive.remove(silent)
    since = time.time_ns()
    assert harness.until_mode(ArmStatus.STOPPED)
    begun = harness.first(since, stopping)
    assert 0.15 < age_s(begun, since) <= 0.3 + MARGIN_S
    covered = [chunk.covers(stamp_ns(begun)) for chunk in harness.sent]
    assert any(covered), "no chunk covered now, so the missing heartbeat was not what stopped the arm"
    assert silent in harness.statuses[-1].reason and "0.30 s" in harness.statuses[-1].reason
    # It stays stopped though chunks go on, and a reset needs the missing node.
    count = len(harness.sent)
    assert harness.bench.until(lambda: len(harness.sent) > count + 3)
    assert harness.mode() == ArmStatus.STOPPED
    refused = harness.reset()
    assert not refused.success and silent in refused.message
    harness.streaming = False
    harness.alive.add(silent)
    assert harness.bench.until(lambda: harness.reset().success, 20.0)
    assert harness.until_mode(ArmStatus.HOLDING)
    harness.start = None
    harness.track()


@pytest.mark.parametrize("never", ["policy", "safety"])
def test_a_required_node_that_was_never_heard_is_not_trusted_once_work_begins(bench, root, never):
    harness = Harness(bench, root)
    harness.alive.remove(never)
    assert bench.until(lambda: harness.statuses and harness.tool is not None, START_S)
    assert harness.mode() == ArmStatus.HOLDING
    harness.steps, harness.streaming = 15, True
    assert harness.until_mode(ArmStatus.STOPPED)
    assert never in harness.statuses[-1].reason
    begun = harness.first(harness.sent[0].stamp_ns, lambda status: status.mode == ArmStatus.TRACKING)
    ended = harness.first(stamp_ns(begun), stopping)
    assert age_s(ended, stamp_ns(begun)) <= 0.3 + MARGIN_S


def test_chunks_of_joints_end_stop_and_latch_like_those_of_the_tool(bench, root):
    harness = up(bench, root, str(root / "config" / "joints" / "franka_place"))

    def again():
        harness.streaming, harness.start = False, None
        assert bench.until(lambda: harness.reset().success, 20.0)
        assert harness.until_mode(ArmStatus.HOLDING)
        harness.track(steps=15)

    # They cease.
    harness.track()
    assert harness.bench.until(lambda: harness.tool[0][0] - harness.start[0][0] > 0.02, 20.0), harness.statuses[-1]
    harness.streaming = False
    chunk = harness.sent[-1]
    assert harness.until_mode(ArmStatus.HOLDING)
    assert age_s(harness.first(chunk.stamp_ns, stopping), chunk.end_ns) <= 0.2 + STATE_PERIOD_S
    assert speed(harness.statuses[-1]) == 0.0
    # A required node falls silent while a chunk covers now.
    for silent in ("policy", "safety"):
        again()
        harness.alive.remove(silent)
        since = time.time_ns()
        assert harness.until_mode(ArmStatus.STOPPED)
        begun = harness.first(since, stopping)
        assert 0.15 < age_s(begun, since) <= 0.3 + MARGIN_S
        assert any(chunk.covers(stamp_ns(begun)) for chunk in harness.sent)
        assert silent in harness.statuses[-1].reason
        refused = harness.reset()
        assert not refused.success and silent in refused.message
        harness.alive.add(silent)
    # The safety node stops.
    again()
    harness.states.publish(SafetyState(state=SafetyState.STOPPED, reason="the cup is on fire"))
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "the cup is on fire" in harness.statuses[-1].reason
    # The robot falls silent: a fault, until a person recovers it.
    again()
    twin = bench.processes["twin"]
    twin.send_signal(signal.SIGSTOP)
    assert harness.until_mode(ArmStatus.FAULT)
    twin.send_signal(signal.SIGCONT)
    assert "silent" in harness.statuses[-1].reason
    again()


def test_without_a_live_grant_the_arm_stops_though_safety_lets_chunks_pass(harness):
    harness.track(steps=15)
    harness.bench.stop_granting()
    since = time.time_ns()
    assert harness.until_mode(ArmStatus.STOPPED)
    assert age_s(harness.first(since, stopping), since) <= 0.5 + MARGIN_S
    assert speed(harness.statuses[-1]) == 0.0 and age_s(harness.statuses[-1], since) <= 1.0
    assert harness.statuses[-1].reason.startswith("nobody renewed the grant of 'policy' for 0.50 s")
    # A reset alone moves nothing: somebody has to be in charge again.
    assert harness.reset().success
    assert harness.until_mode(ArmStatus.HOLDING)
    count = len(harness.sent)
    assert harness.bench.until(lambda: len(harness.sent) > count + 3)
    assert harness.mode() == ArmStatus.HOLDING
    harness.bench.grant("policy")
    harness.start = None
    harness.track()


def test_a_grant_that_is_released_ends_the_motion_without_a_latch(harness):
    harness.track(steps=15)
    harness.bench.grant()
    since = time.time_ns()
    assert harness.until_mode(ArmStatus.HOLDING)
    assert age_s(harness.first(since, stopping), since) <= MARGIN_S, "the arm followed its chunk to the end"
    harness.bench.grant("policy")
    harness.start = None
    harness.track()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_safety_process_stops_the_arm(harness, root, kind):
    safety = harness.hand_over_to_safety(root)
    harness.track(steps=15)
    safety.send_signal(kind)
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "safety" in harness.statuses[-1].reason
    assert harness.sent[-1].covers(time.time_ns())


def test_bid_reset_frees_arm_and_safety(harness, root, tmp_path):
    received: list[SafetyState] = []
    harness.bench.node.create_subscription(SafetyState, "/safety/state", received.append, STATE)
    harness.hand_over_to_safety(root)
    assert harness.bench.until(lambda: received and received[-1].state == SafetyState.RUNNING, START_S)
    harness.track(steps=15)
    harness.alive.remove("policy")
    assert harness.until_mode(ArmStatus.STOPPED)
    assert harness.bench.until(lambda: received[-1].state == SafetyState.STOPPED, 20.0)
    harness.streaming = False

    def reset() -> int:
        command = start_bid("reset", output=tmp_path / "reset.txt")
        assert harness.bench.until(lambda: command.poll() is not None, START_S)
        return command.returncode

    assert reset() == 1, "a reset succeeded while the policy was silent"
    harness.alive.add("policy")
    assert reset() == 0
    assert harness.until_mode(ArmStatus.HOLDING)
    assert harness.bench.until(lambda: received[-1].state == SafetyState.RUNNING, 20.0)
    harness.start = None
    harness.track()


def test_a_stop_of_the_safety_node_latches_until_a_reset(harness):
    harness.track(steps=15)
    harness.states.publish(SafetyState(state=SafetyState.STOPPED, reason="the cup is on fire"))
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "the cup is on fire" in harness.statuses[-1].reason
    harness.streaming = False
    assert harness.reset().success
    assert harness.until_mode(ArmStatus.HOLDING)


def test_the_pose_of_the_tool_is_a_transform_too(harness):
    heard: list[TFMessage] = []
    poses: dict[int, PoseStamped] = {}
    harness.bench.node.create_subscription(TFMessage, "/tf", heard.append, TRANSFORMS)
    harness.bench.node.create_subscription(
        PoseStamped, "/arm/tool_pose", lambda pose: poses.setdefault(stamp_ns(pose), pose), STATE
    )
    both = lambda: [tf.transforms[0] for tf in heard if stamp_ns(tf.transforms[0]) in poses]  # noqa: E731
    assert harness.bench.until(lambda: len(both()) > 5)
    transform = both()[-1]
    assert (transform.header.frame_id, transform.child_frame_id) == ("base", "tool")
    pose = poses[stamp_ns(transform)].pose
    assert transform.transform.translation.x == pose.position.x and transform.transform.rotation == pose.orientation
    stamps = [stamp_ns(tf.transforms[0]) for tf in heard]
    assert all(before < after for before, after in pairwise(stamps)), "tf2 warns of every stamp that is said twice"


def test_no_measurement_is_told_twice_and_a_silent_robot_is_still_told_of(harness):
    frozen = harness.bench.processes["twin"]
    assert harness.bench.until(lambda: len(harness.statuses) > 100)
    frozen.send_signal(signal.SIGSTOP)
    try:
        assert harness.until_mode(ArmStatus.FAULT)
        count = len(harness.statuses)
        assert harness.bench.until(lambda: len(harness.statuses) > count + 10)
    finally:
        frozen.send_signal(signal.SIGCONT)
    alive = [stamp_ns(status) for status in harness.statuses if status.mode == ArmStatus.HOLDING]
    assert len(alive) == len(set(alive)) > 100


def test_another_robot_neither_moves_nor_stops_nor_keeps_this_arm_alive(harness):
    harness.foreign.add("chunks")
    harness.streaming = True
    assert harness.bench.until(lambda: len(harness.sent) > 10)
    assert {status.mode for status in harness.statuses} == {ArmStatus.HOLDING}
    assert {status.source for status in harness.statuses} == {""}
    harness.foreign.clear()
    harness.start = None
    harness.track(steps=15)
    sent = len(harness.sent)
    stop = SafetyState(robot="other", state=SafetyState.STOPPED, reason="not this one")
    assert harness.bench.until(lambda: len(harness.sent) > sent + 5, each=lambda: harness.states.publish(stop))
    assert "not this one" not in " ".join(status.reason for status in harness.statuses)
    assert harness.mode() == ArmStatus.TRACKING, harness.statuses[-1].reason
    harness.foreign.add("policy")
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "no sign of life from 'policy'" in harness.statuses[-1].reason


def test_a_twin_that_ends_is_a_fault_and_the_node_lives_on(harness):
    twin = harness.bench.processes["twin"]
    harness.track(steps=15)
    twin.kill()
    assert harness.until_mode(ArmStatus.FAULT)
    assert harness.address in harness.statuses[-1].reason
    count = len(harness.statuses)
    assert harness.bench.until(lambda: len(harness.statuses) > count + 20)
    assert harness.bench.processes["arm"].poll() is None
    assert not harness.reset().success, "a reset succeeded without a robot"


@pytest.mark.parametrize("died", [False, True])
def test_a_recovery_that_takes_long_is_no_silence_but_a_node_that_died_in_it_is(bench, root, died):
    """The node takes no heartbeats while it recovers the robot, and looks at once, the sooner the higher its rate."""
    harness = up(bench, root, "ur5_pick", rate_hz=1000)
    twin = harness.bench.processes["twin"]
    harness.track(steps=15)
    harness.streaming = False
    twin.send_signal(signal.SIGSTOP)
    assert harness.until_mode(ArmStatus.FAULT)
    answer = harness.ask_reset()
    assert not harness.bench.until(answer.done, 1.0), "the robot was recovered at once, so this test shows nothing"
    if died:
        harness.alive.remove("policy")
    twin.send_signal(signal.SIGCONT)
    assert harness.bench.until(answer.done, 30.0)
    recovered = time.time_ns()
    assert answer.result().success, answer.result().message
    newest = lambda: age_s(harness.statuses[-1], recovered)  # noqa: E731
    assert harness.bench.until(lambda: newest() > 0.3 + 3 * MARGIN_S)
    modes = {status.mode for status in harness.statuses if age_s(status, recovered) > MARGIN_S}
    if died:
        assert harness.mode() == ArmStatus.STOPPED
        assert "no sign of life from 'policy'" in harness.statuses[-1].reason
    else:
        assert modes == {ArmStatus.HOLDING}, harness.statuses[-1].reason
        harness.start = None
        harness.track()


def test_ending_the_node_leaves_the_robot_at_rest(harness, root):
    harness.track(steps=15)
    arm = harness.bench.processes["arm"]
    arm.send_signal(signal.SIGTERM)
    status, output = harness.bench.finish("arm", 30.0)
    assert status == 0 and "Traceback" not in output
    # A second arm node sees the robot at rest, which the first one has left.
    harness.streaming = False
    harness.bench.node.create_subscription(JointState, "/joint_states", harness.joints.append, STATE)
    harness.bench.start("arm", arm_parameters(root, harness.address))
    # Fingers have a message of their own, without velocities.
    velocities = lambda: [joint.velocity for joint in list(harness.joints) if joint.velocity]  # noqa: E731
    assert harness.bench.until(lambda: len(velocities()) > 10, START_S)
    assert np.abs(velocities()[:10]).max() < 0.01


def test_no_address_ends_the_node_with_one_sentence(bench, root):
    bench.start("arm", arm_parameters(root, ""))
    status, output = bench.finish("arm", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "robot_ip is empty" in output and "Traceback" not in output


def test_a_robot_that_does_not_answer_ends_the_node_with_one_sentence(bench, root):
    bench.start("arm", arm_parameters(root, "127.77.77.77", connect_wait_s=0.0))
    status, output = bench.finish("arm", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "127.77.77.77" in output and "Traceback" not in output


def test_a_robot_whose_tool_would_be_what_the_node_itself_publishes_ends_it_with_one_sentence(bench, root, tmp_path):
    """It would hear its own transforms: what it measured last would look new for ever."""
    (tmp_path / "robot.yaml").write_text("joint_names: [a, b]\ntool_pose: tf\ntf_tool: tool\n")
    bench.start("arm", arm_parameters(root, "arm", arm="ros", arm_config=str(tmp_path / "robot.yaml")))
    status, output = bench.finish("arm", START_S)
    assert status == 2 and output.count("error: ") == 1 and "Traceback" not in output
    assert "bid_ros itself publishes frame 'tool' on /tf, as the task's tool_frame; valid are two names" in output


@pytest.mark.parametrize("fingers", [0, 2])
@pytest.mark.parametrize("name", ["franka", "ur"])
def test_every_joint_has_a_name_with_and_without_a_gripper(name, fingers):
    configs = {
        "franka": FrankaConfig("robot", gripper=bool(fingers)),
        "ur": UrConfig("robot", gripper=RobotiqConfig() if fingers else None),
    }
    info = build_arm(name, configs[name]).info
    count = len(info.joint_names)
    joints, width = np.arange(count) / 10, 0.05 if fingers else float("nan")
    state = ArmState(5, joints, 2 * joints, np.zeros(3), np.zeros(4), width, False, True, "")
    arm, *hand = joint_messages(info, state, "base")
    assert list(arm.name) == list(info.joint_names) and len(set(arm.name)) == count
    assert list(arm.position) == [*joints] and list(arm.velocity) == [*(2 * joints)]
    assert [len(message.name) for message in hand] == [fingers] * bool(fingers)
    for message in hand:
        assert not set(message.name) & set(arm.name) and list(message.position) == [0.025] * fingers
        assert not message.velocity, "the speed of fingers is not measured"


def test_joint_states_never_have_a_value_that_is_no_number():
    info = build_arm("franka", FrankaConfig("robot")).info
    joints, unknown = np.zeros(7), np.full(7, np.nan)
    state = ArmState(5, joints, unknown, np.zeros(3), np.zeros(4), float("nan"), False, True, "")
    (message,) = joint_messages(info, state, "base")
    assert list(message.name) == list(info.joint_names) and list(message.position) == [0.0] * 7
    assert not message.velocity

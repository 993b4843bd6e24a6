"""The safety node as a real process: what it forwards, what it refuses, how it latches and resets."""

from __future__ import annotations

import json
import signal
import time
from array import array

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from qos import COMMAND, EVERY_COMMAND, EVERY_STATE, STATE
from real_time import HoldUps
from std_msgs.msg import String
from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Grant, Heartbeat, SafetyState
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import load_task
from bid_ros.core.topics import GRANT
from bid_ros.episodes.causes import ARM_ENDS
from bid_ros.nodes.ros_messages import chunk_to_message, duration_message, header, pose_message

DOWN = [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]


class Harness:
    """Heartbeats, chunks and what comes back."""

    def __init__(self, bench, root, granted=True, height=0.3, **parameters):
        self.bench = bench
        self.task = load_task(root / "config" / "franka_place" / "task.yaml")
        self.forwarded: list[ChunkMessage] = []
        self.states: list[SafetyState] = []
        self.alive = {"camera", "policy", "arm"}
        self.foreign: set[str] = set()
        self.beaten = 1000
        node = bench.node
        self._chunks = node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        self.tool_known, self.tool_frozen = True, False
        self.height, self.gripper = height, {}  # of the tool, m; what the arm's status says of the gripper
        node.create_subscription(ChunkMessage, "/safety/chunk", self.forwarded.append, EVERY_COMMAND)
        self.statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        node.create_subscription(SafetyState, "/safety/state", self.states.append, EVERY_STATE)
        node.create_timer(0.03, self.beat)
        if granted:
            bench.grant("policy")
        self.reset_client = node.create_client(Trigger, "/safety/reset")
        task = str(root / "config" / "franka_place" / "task.yaml")
        given = {"task": task, "twin": True, "required": sorted(self.alive), "settle_s": 0.1, **parameters}
        bench.start("safety", given)

    def beat(self):
        self.beaten += 1
        for name in self.alive:
            robot = "other" if name in self.foreign else ""
            self._beats.publish(Heartbeat(node=name, robot=robot, sequence=self.beaten))
        if self.tool_known:
            tool = pose_message([0.5, 0.0, self.height], [1.0, 0.0, 0.0, 0.0])
            stamp_ns = 1 if self.tool_frozen else time.time_ns()
            self.statuses.publish(ArmStatus(header=header(stamp_ns, "base"), tool=tool, **self.gripper))

    def running(self) -> bool:
        return bool(self.states) and self.states[-1].state == SafetyState.RUNNING

    def stopped(self) -> bool:
        return bool(self.states) and self.states[-1].state == SafetyState.STOPPED

    def send(self, change=None, stamp_offset_ns: int = 0):
        actions = np.tile([0.5, 0.0, self.height, *DOWN, 0.04], (15, 1))
        chunk = ActionChunk(time.time_ns() + stamp_offset_ns, self.task.dt_ns, actions)
        message = chunk_to_message(chunk, self.task, "")
        if change is not None:
            change(message)
        self._chunks.publish(message)

    def send_until(self, condition, change=None, stamp_offset_ns: int = 0) -> bool:
        return self.bench.until(condition, 10.0, each=lambda: self.send(change, stamp_offset_ns))

    def reset(self) -> Trigger.Response:
        future = self.reset_client.call_async(Trigger.Request())
        assert self.bench.until(future.done)
        return future.result()


@pytest.fixture
def harness(bench, root):
    harness = Harness(bench, root)
    assert bench.until(harness.running), "the safety node did not come up"
    return harness


@pytest.fixture
def calm(bench, root):
    """A harness for what is no matter of heartbeats: a computer that holds this process up makes none be missed."""
    harness = Harness(bench, root, heartbeat_deadline_s=2.0)
    assert bench.until(harness.running), "the safety node did not come up"
    return harness


def test_good_chunks_pass_unchanged(harness):
    assert harness.send_until(lambda: harness.forwarded)
    assert harness.forwarded[0].actions[:3].tolist() == [0.5, 0.0, 0.3]
    assert harness.running()


def test_a_held_object_stays_off_the_table_and_an_empty_gripper_goes_down(bench, root):
    calm = Harness(bench, root, height=0.05, heartbeat_deadline_s=2.0)
    assert bench.until(calm.running)
    for calm.gripper in ({"gripper_width": 0.0}, {"gripper_width": 0.04, "gripper_busy": True}):
        calm.forwarded.clear()
        assert calm.send_until(lambda: len(calm.forwarded) > 2) and calm.running()
    calm.gripper = {"gripper_width": 0.04}
    assert calm.send_until(calm.stopped)
    state = calm.states[-1]
    assert (state.rule, state.limit) == ("keep_out", 0.0) and "'object' comes 18" in state.reason, state.reason
    assert state.measured == pytest.approx(-0.018, abs=1e-3)


def not_finite(message):
    message.actions[3] = float("nan")


def outside(message):
    for row in range(15):
        message.actions[10 * row] = 0.95


def wrong_shape(message):
    message.steps = 14


def slowed(message):
    message.scale = 0.5


@pytest.mark.parametrize(
    ("change", "rule"), [(not_finite, "finite"), (outside, "workspace"), (wrong_shape, "shape"), (slowed, "shape")]
)
def test_a_bad_chunk_is_refused_and_latches_with_its_reason(harness, change, rule):
    assert harness.send_until(harness.stopped, change)
    state = harness.states[-1]
    assert (state.rule, state.action, state.header.frame_id) == (rule, SafetyState.STOP, "base")
    assert len(state.reason) > 20
    harness.forwarded.clear()
    harness.send()
    refused = state.refused
    assert harness.send_until(lambda: harness.states[-1].refused >= refused and len(harness.states) > 5)
    assert not harness.forwarded, "a good chunk passed a latched stop"
    assert harness.reset().success
    assert harness.send_until(lambda: harness.forwarded)


def fast(message):
    rows = np.reshape(message.actions, (15, 10))[:5].copy()
    rows[:, 1] += 0.06 * np.arange(5)  # 0.6 m/s
    message.steps, message.actions = 5, array("d", rows.ravel())


def test_a_chunk_that_is_too_fast_is_slowed_forwarded_and_told(harness):
    slowed = lambda: any(state.action == SafetyState.SCALE for state in harness.states)  # noqa: E731
    assert harness.send_until(lambda: harness.forwarded and slowed(), fast)
    # Rows before the one that holds when it is judged stay as they are: after a hold-up the first message has some.
    prompt = lambda: [item for item in harness.forwarded if item.actions[11] < item.actions[1] + 0.059]  # noqa: E731
    assert harness.send_until(prompt, fast), "no chunk was judged within its first step"
    message, limit = prompt()[0], harness.task.limits.max_speed
    rows = np.reshape(message.actions, (message.steps, message.dims))
    assert 0.6 < message.scale < limit / 0.6 and message.steps > 5
    assert np.diff(rows[:, 1]).max() == pytest.approx(0.06 * message.scale) and rows[-1, 1] == pytest.approx(0.24)
    state = next(state for state in harness.states if state.action == SafetyState.SCALE)
    assert (state.state, state.rule, state.limit) == (SafetyState.RUNNING, "speed", limit)
    assert state.measured == pytest.approx(0.6) and "; slowed down to 0." in state.reason
    harness.states.clear()
    assert harness.send_until(lambda: harness.states and harness.states[-1].action == SafetyState.NONE)
    assert harness.running() and harness.states[-1].refused == 0


@pytest.mark.parametrize("offset_s", [-30.0, 30.0])
def test_chunks_from_the_past_and_far_future_are_refused_and_latch_in_the_end(harness, offset_s):
    assert harness.send_until(harness.stopped, stamp_offset_ns=round(offset_s * 1e9))
    assert harness.states[-1].rule == "time", harness.states[-1]
    (warned, *_) = [state for state in harness.states if state.action == SafetyState.WARN]
    assert (warned.state, warned.rule) == (SafetyState.RUNNING, "time") and len(warned.reason) > 20
    assert not harness.forwarded


@pytest.mark.parametrize("frozen", [False, True], ids=["silent arm", "repeated pose"])
def test_nothing_passes_while_the_tool_pose_is_unknown(harness, frozen):
    harness.tool_known, harness.tool_frozen = frozen, frozen
    assert harness.send_until(harness.stopped)
    assert harness.states[-1].rule == "measurement"


@pytest.mark.parametrize("silent", ["camera", "policy", "arm"])
def test_a_missing_heartbeat_latches_and_reset_waits_for_its_return(harness, silent):
    harness.alive.remove(silent)
    assert harness.bench.until(harness.stopped)
    assert harness.states[-1].rule == f"heartbeat:{silent}"
    assert harness.states[-1].limit == pytest.approx(0.3)
    response = harness.reset()
    assert not response.success and silent in response.message
    harness.alive.add(silent)
    assert harness.bench.until(lambda: harness.reset().success)
    assert harness.send_until(lambda: harness.forwarded)


def test_silence_before_the_first_grant_stops_nothing(bench, root):
    harness = Harness(bench, root, granted=False)
    assert bench.until(harness.running)
    harness.alive.remove("camera")
    waits = lambda: harness.states[-1].state == SafetyState.WAITING  # noqa: E731
    assert bench.until(waits) and harness.states[-1].reason == "waiting for camera"
    harness.alive.add("camera")
    assert bench.until(harness.running)
    bench.grant("policy")
    assert harness.send_until(lambda: harness.forwarded)
    harness.alive.remove("camera")
    assert harness.send_until(harness.stopped) and harness.states[-1].rule == "heartbeat:camera"


def test_chunks_that_nobody_grants_are_ignored_and_latch_nothing(calm):
    calm.bench.grant("teleop")
    calm.states.clear()
    assert calm.bench.until(lambda: len(calm.states) > 3)  # the grant before may be read until now
    calm.forwarded.clear()
    calm.states.clear()
    ignored = lambda: len(calm.states) > 15  # noqa: E731
    assert calm.send_until(ignored)
    assert not calm.forwarded and calm.running()
    calm.bench.grant("policy")
    assert calm.send_until(lambda: calm.forwarded)


def test_a_grant_that_nobody_renews_latches_with_a_reason_that_names_it(harness):
    assert harness.send_until(lambda: harness.forwarded)
    harness.bench.stop_granting()
    begun = time.monotonic()
    with HoldUps() as since:
        assert harness.send_until(harness.stopped)
        assert since.seconds() < 1.0 and time.monotonic() - begun > 0.4
    assert harness.states[-1].rule == "grant"
    assert harness.states[-1].reason.startswith("nobody renewed the grant of 'policy' for 0.50 s")
    harness.forwarded.clear()
    assert harness.reset().success
    assert harness.send_until(harness.running)
    assert not harness.forwarded, "a reset alone let the policy move the arm again"
    harness.bench.grant("policy")
    assert harness.send_until(lambda: harness.forwarded)


def test_a_grant_that_is_released_ends_without_a_stop(calm):
    assert calm.send_until(lambda: calm.forwarded)
    calm.bench.grant()
    calm.states.clear()
    assert calm.send_until(lambda: len(calm.states) > 15)
    assert calm.running()


def test_a_grant_for_longer_than_a_second_is_refused(harness):
    harness.bench.stop_granting()
    publisher = harness.bench.node.create_publisher(Grant, GRANT, STATE)
    for_an_hour = Grant(granter="hours", sources=["policy"], duration=duration_message(3600 * 10**9))

    def ask():
        publisher.publish(for_an_hour)
        harness.send()

    assert harness.bench.until(lambda: publisher.get_subscription_count() > 0)
    # What the bench granted before is over by then.
    begun = time.monotonic()
    assert harness.bench.until(lambda: time.monotonic() - begun > 1.0)
    harness.forwarded.clear()
    harness.states.clear()
    assert harness.bench.until(lambda: len(harness.states) > 15, 10.0, each=ask)
    assert not harness.forwarded


def foreign(message):
    message.robot = "other"


def foreign_and_outside(message):
    foreign(message)
    outside(message)


@pytest.mark.parametrize("change", [foreign, foreign_and_outside])
def test_a_chunk_of_another_robot_is_not_forwarded_and_stops_nothing(calm, change):
    seen = len(calm.states)
    assert calm.send_until(lambda: len(calm.states) > seen + 10, change)
    assert not calm.forwarded and calm.running() and calm.states[-1].refused == 0
    assert calm.send_until(lambda: calm.forwarded)
    calm.bench.processes["safety"].terminate()
    _, output = calm.bench.finish("safety")
    assert output.count("refused messages on policy/chunk of robot 'other'; valid is ''") == 1


def test_a_fault_of_another_robot_stops_nothing(calm):
    seen = len(calm.states)
    status = ArmStatus(robot="other", mode=ArmStatus.FAULT, reason="not this one")
    assert calm.bench.until(lambda: len(calm.states) > seen + 10, each=lambda: calm.statuses.publish(status))
    assert calm.running()
    status.robot = ""
    assert calm.bench.until(calm.stopped, each=lambda: calm.statuses.publish(status))


@pytest.mark.parametrize("silent", ["camera", "policy", "arm"])
def test_a_heartbeat_of_another_robot_keeps_nothing_alive(harness, silent):
    harness.foreign.add(silent)
    assert harness.bench.until(harness.stopped)
    assert harness.states[-1].rule == f"heartbeat:{silent}"


def test_a_node_in_a_namespace_speaks_for_the_robot_of_that_name(bench, root):
    states: list[SafetyState] = []
    beats: list[Heartbeat] = []
    statuses: list[DiagnosticStatus] = []
    bench.node.create_subscription(SafetyState, "/cell/left/safety/state", states.append, EVERY_STATE)
    bench.node.create_subscription(Heartbeat, "/cell/left/heartbeat", beats.append, EVERY_STATE)
    bench.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda item: statuses.extend(item.status), EVERY_STATE
    )
    task = str(root / "config" / "franka_place" / "task.yaml")
    bench.start("safety", {"task": task, "twin": True}, "-r", "__ns:=/cell/left")
    assert bench.until(lambda: states and beats and statuses)
    assert states[0].robot == beats[0].robot == "cell/left"
    assert (statuses[0].name, statuses[0].hardware_id) == ("bid_ros: cell/left/safety", "cell/left")


def test_a_bad_task_file_ends_the_node_with_one_sentence(bench, tmp_path):
    task = tmp_path / "task.yaml"
    task.write_text("name: x\nspeed_limit: 3\n")
    bench.start("safety", {"task": str(task)})
    status, output = bench.finish("safety")
    assert status == 2
    assert "error: task file" in output and "Traceback" not in output


def test_at_a_robot_whose_joints_nobody_knows_the_node_does_not_start(bench, root):
    bench.start("safety", {"task": str(root / "config" / "franka_place" / "task.yaml")})
    status, output = bench.finish("safety")
    assert status == 2 and "error: arm_config is empty, so nobody knows the joints of the robot" in output


def test_a_safety_node_that_was_held_up_blames_nobody_else(bench, root):
    harness = Harness(bench, root, heartbeat_deadline_s=0.6)
    assert bench.until(harness.running)
    assert harness.send_until(lambda: harness.forwarded)
    process = bench.processes["safety"]
    for _ in range(3):
        process.send_signal(signal.SIGSTOP)
        bench.until(lambda: False, 0.7)  # longer than grants and heartbeats are valid
        process.send_signal(signal.SIGCONT)
        harness.states.clear()
        assert bench.until(lambda: len(harness.states) > 3)
        assert harness.running(), harness.states[-1].reason
    bench.stop_granting()
    assert bench.until(harness.stopped), "nobody grants: that is no hold-up"


class Words:
    """Plays the diagnostics of other nodes."""

    def __init__(self, bench) -> None:
        self._diagnostics = bench.node.create_publisher(DiagnosticArray, "/diagnostics", STATE)

    def say(self, name: str, problem: str, robot: str = "franka") -> None:
        level = DiagnosticStatus.ERROR if problem else DiagnosticStatus.OK
        status = DiagnosticStatus(level=level, name=f"bid_ros: {name}", message=problem, hardware_id=robot)
        self._diagnostics.publish(DiagnosticArray(status=[status]))


def test_a_policy_that_pauses_says_why_on_the_state_and_stops_nothing(calm):
    words, problem = Words(calm.bench), "images of 'wrist' have not changed for 0.5 s"

    def say():
        words.say("policy", "of another robot", robot="other")
        words.say("policy", problem)

    assert calm.bench.until(lambda: problem in calm.states[-1].reason, 10.0, each=say), calm.states[-1]
    state = calm.states[-1]
    assert (state.state, state.action, state.rule) == (SafetyState.RUNNING, SafetyState.WARN, "no_chunk")
    assert state.reason.startswith("no chunk of 'policy' for ") and state.measured > state.limit == 0.5
    assert calm.send_until(lambda: not calm.states[-1].reason)


def test_a_stop_for_a_silent_camera_says_what_is_wrong_with_it(harness):
    words, problem = Words(harness.bench), "camera 'wrist' shows nothing: its image is black"
    harness.alive.remove("camera")
    say = lambda: words.say("camera", problem)  # noqa: E731
    assert harness.bench.until(lambda: problem in harness.states[-1].reason, 10.0, each=say), harness.states[-1]
    assert harness.stopped() and harness.states[-1].rule == "heartbeat:camera"


@pytest.mark.parametrize("granted", [("shadow",), ("shadow", "policy")], ids=["as it should be", "and to the policy"])
def test_in_shadow_mode_the_policy_is_judged_and_nothing_of_it_passes(bench, root, granted):
    harness = Harness(bench, root, granted=False, heartbeat_deadline_s=2.0, shadow=True)
    reports: list[dict] = []
    bench.node.create_subscription(
        String, "/safety/shadow", lambda text: reports.append(json.loads(text.data)), EVERY_STATE
    )
    assert bench.until(harness.running), "the safety node did not come up"
    bench.grant(*granted)
    assert harness.send_until(lambda: reports and reports[-1]["passed"] > 0)
    for change, rule in ((fast, "speed"), (outside, "workspace"), (wrong_shape, "shape")):
        told = lambda rule=rule: any(item["rule"] == rule for item in reports[-1]["rules"])  # noqa: E731
        assert harness.send_until(told, change)
    assert harness.running() and not harness.forwarded and harness.states[-1].refused == 0
    bench.grant()
    assert bench.until(lambda: reports[-1]["episodes"] == 1)
    found = {item["rule"]: item["action"] for item in reports[-1]["rules"]}
    assert found == {"speed": "scale", "workspace": "stop", "shape": "stop"}
    assert reports[-1]["passed"] + reports[-1]["refused"] == reports[-1]["chunks"] and reports[-1]["slowed"] > 0
    assert not harness.forwarded


@pytest.mark.parametrize("arm_lives", [True, False], ids=["arm ends in order", "arm dies as well"])
def test_a_safety_node_that_ends_names_an_arm_that_died(bench, root, arm_lives):
    """As where a killed supervisor ends all nodes: only of an arm node that died with it nobody hears why."""
    harness = Harness(bench, root)
    assert bench.until(harness.running)
    assert harness.send_until(lambda: harness.forwarded)
    bench.processes["safety"].terminate()
    harness.alive = {"arm"} if arm_lives else set()
    # What is on its way when the end is asked for may still pass.
    bench.until(lambda: False, 0.1)
    harness.forwarded.clear()
    if arm_lives:
        harness.gripper = {"mode": ArmStatus.STOPPED, "reason": ARM_ENDS}
    process = bench.processes["safety"]
    assert bench.until(lambda: process.poll() is not None, each=harness.send)
    assert not harness.forwarded
    stops = {state.rule for state in harness.states if state.state == SafetyState.STOPPED}
    assert stops == (set() if arm_lives else {"heartbeat:arm"})
    status, output = bench.finish("safety")
    assert status == 0, output


@pytest.mark.parametrize("reason", [ARM_ENDS, "the gripper does not answer"])
def test_a_safety_node_that_ends_waits_for_no_arm_that_rests(bench, root, reason):
    """An arm node says that it ends a moment before the safety node is asked to, or has stopped before."""
    harness = Harness(bench, root)
    assert bench.until(harness.running)
    harness.gripper = {"mode": ArmStatus.STOPPED, "reason": reason}
    bench.until(lambda: False, 0.3)
    harness.alive.discard("arm")
    harness.tool_known = False
    process = bench.processes["safety"]
    process.terminate()
    assert bench.until(lambda: process.poll() is not None)
    assert not any(state.state == SafetyState.STOPPED for state in harness.states)

"""How the process of an arm node begins and ends, and what needs an arm of its own."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from niceness import may_raise
from nodes.arm_harness import MARGIN_S, START_S, STATE_PERIOD_S, Harness, age_s, arm_parameters, speed, stopping, up
from qos import EVERY_STATE
from real_time import HoldUps
from sensor_msgs.msg import JointState

from bid_msgs.msg import ArmStatus, SafetyState
from bid_ros.core.stamps import stamp_ns
from bid_ros.nodes.arm_report import joint_messages
from bid_ros.nodes.base import TWIN_PRIORITY
from bid_ros.recording.reader import BagReader
from bid_ros.robots.base import ArmState
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.registry import build_arm
from bid_ros.robots.robotiq.driver import RobotiqConfig
from bid_ros.robots.ur.config import UrConfig
from bid_ros.system.folder import find_system


def bench_task(harness):
    return str(find_system(harness.name).file("task.yaml"))


@pytest.mark.parametrize("never", ["policy", "safety"])
def test_a_required_node_that_was_never_heard_is_not_trusted_once_work_begins(bench, never):
    harness = Harness(bench)
    harness.alive.remove(never)
    assert bench.until(lambda: harness.statuses and harness.tool is not None, START_S)
    assert harness.mode() == ArmStatus.HOLDING
    harness.steps, harness.streaming = 15, True
    with HoldUps() as held:
        assert harness.until_mode(ArmStatus.STOPPED)
        lost_s = held.lost_s
    assert never in harness.statuses[-1].reason
    begun = harness.first(harness.sent[0].stamp_ns, lambda status: status.mode == ArmStatus.TRACKING)
    ended = harness.first(stamp_ns(begun), stopping)
    assert age_s(ended, stamp_ns(begun)) <= 0.3 + MARGIN_S + lost_s


def test_chunks_of_joints_end_stop_and_latch_like_those_of_the_tool(bench, root):
    harness = up(bench, str(root / "config" / "joints" / "franka_place"))

    def again():
        harness.streaming, harness.start = False, None
        assert bench.until(lambda: harness.reset().success, 20.0)
        assert harness.until_mode(ArmStatus.HOLDING)
        harness.track(steps=15)

    # They cease.
    harness.track()
    assert harness.bench.until(lambda: harness.moved() > 0.02, 20.0), harness.statuses[-1]
    chunk = harness.cease()
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


def test_a_twin_that_ends_is_a_fault_and_the_node_lives_on(bench):
    harness = up(bench, "franka_place")
    twin, arm = (harness.bench.processes[name] for name in ("twin", "arm"))
    if may_raise(TWIN_PRIORITY):  # a busy computer must not slow the robot down that the twin stands for
        assert os.getpriority(os.PRIO_PROCESS, twin.pid) <= os.getpriority(os.PRIO_PROCESS, arm.pid)
    harness.track(steps=15)
    twin.kill()
    assert harness.until_mode(ArmStatus.FAULT)
    assert harness.address in harness.statuses[-1].reason
    count = len(harness.statuses)
    assert harness.bench.until(lambda: len(harness.statuses) > count + 20)
    assert harness.bench.processes["arm"].poll() is None
    assert not harness.reset().success, "a reset succeeded without a robot"
    # Rebooted: nothing comes back by itself, and the same run goes on after a reset.
    harness.streaming = False
    bench.start("twin", {"task": bench_task(harness), "address": harness.address})
    assert bench.until(lambda: harness.reset().success, START_S), harness.statuses[-1].reason
    assert harness.until_mode(ArmStatus.HOLDING)
    harness.start = None
    harness.track(steps=15)


@pytest.mark.parametrize("died", [False, True])
def test_a_recovery_that_takes_long_is_no_silence_but_a_node_that_died_in_it_is(bench, died):
    """The node takes no heartbeats while it recovers the robot, and looks at once, the sooner the higher its rate."""
    harness = up(bench, "ur5_pick", rate_hz=1000)
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


def test_ending_the_node_leaves_the_robot_at_rest(bench):
    harness = up(bench, "franka_place")
    harness.track(steps=15)
    arm = harness.bench.processes["arm"]
    arm.send_signal(signal.SIGTERM)
    status, output = harness.bench.finish("arm", 30.0)
    assert status == 0 and "Traceback" not in output
    # A second arm node sees the robot at rest, which the first one has left.
    harness.streaming = False
    harness.bench.node.create_subscription(JointState, "/joint_states", harness.joints.append, EVERY_STATE)
    second = harness.bench.start("arm", arm_parameters(harness.address))
    # Fingers have a message of their own, without velocities.
    velocities = lambda: [joint.velocity for joint in list(harness.joints) if joint.velocity]  # noqa: E731
    if not harness.bench.until(lambda: len(velocities()) > 10, START_S):
        second.terminate()
        pytest.fail(f"the second arm node ended with {harness.bench.finish('arm')}")
    assert np.abs(velocities()[:10]).max() < 0.01


def test_no_address_ends_the_node_with_one_sentence(bench):
    bench.start("arm", arm_parameters(""))
    status, output = bench.finish("arm", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "robot_ip is empty" in output and "Traceback" not in output


def test_a_robot_that_is_switched_on_late_is_awaited_and_stays_stopped_until_a_reset(bench):
    """It is no twin to the arm node, which would let a twin begin at once."""
    harness = Harness(bench, "ur5_pick", late=True, twin=False, connect_wait_s=START_S)
    assert bench.until(lambda: bench.node.count_publishers("/arm/status"), START_S)
    # It takes seconds to start, so the first connection has failed before.
    bench.start("twin", {"task": bench_task(harness), "address": harness.address})
    assert bench.until(lambda: harness.statuses and harness.tool is not None, START_S), "it was not awaited"
    assert harness.mode() == ArmStatus.STOPPED
    reason = harness.statuses[-1].reason
    assert reason.startswith("the robot was not ready when the run began (robot at ") and "then reset" in reason
    assert bench.until(lambda: harness.reset().success, START_S), harness.statuses[-1].reason
    assert harness.until_mode(ArmStatus.HOLDING)
    bench.processes["arm"].send_signal(signal.SIGTERM)
    status, output = bench.finish("arm", 30.0)
    assert status == 0 and f"error: robot at {harness.address}: " in output
    assert f"waiting for it, {START_S:g} s in all: Ctrl-C ends the run" in output


def test_a_robot_that_does_not_answer_ends_the_node_with_one_sentence(bench):
    bench.start("arm", arm_parameters("127.77.77.77", connect_wait_s=0.0))
    status, output = bench.finish("arm", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "127.77.77.77" in output and "Traceback" not in output


@pytest.mark.parametrize("killed", [False, True], ids=["unreachable", "killed"])
def test_after_an_arm_that_failed_the_recorder_ends_within_the_patience_of_launch(bench, root, tmp_path, killed):
    """The launch program waits 5 s after SIGINT."""
    bench.start("recorder", {"task": str(root / "config" / "franka_place" / "task.yaml"), "bag": str(tmp_path / "bag")})
    assert bench.until(lambda: bench.node.count_subscribers("/arm/status"), START_S)
    bench.start("arm", arm_parameters("127.77.77.77", connect_wait_s=START_S if killed else 0.0))
    if killed:
        assert bench.until(lambda: bench.node.count_publishers("/arm/status"), START_S)
        bench.processes["arm"].kill()
    assert bench.finish("arm", START_S)[0] == (-signal.SIGKILL if killed else 2)
    asked = time.monotonic()
    bench.processes["recorder"].send_signal(signal.SIGINT)
    assert bench.finish("recorder", START_S)[0] == 0
    took_s = time.monotonic() - asked
    print(f"the recorder ended after {took_s:.2f} s")
    # One that is killed is on the graph for 20 s. One that fails leaves it, so nobody waits for its last words.
    assert took_s < (4.8 if killed else 2.5)
    with BagReader(tmp_path / "bag") as reader:
        assert reader.was_complete


def test_a_robot_whose_tool_would_be_what_the_node_itself_publishes_ends_it_with_one_sentence(bench, tmp_path):
    """It would hear its own transforms: what it measured last would look new for ever."""
    (tmp_path / "robot.yaml").write_text("joint_names: [a, b]\ntool_pose: tf\ntf_tool: tool\n")
    bench.start("arm", arm_parameters("arm", arm="ros", arm_config=str(tmp_path / "robot.yaml")))
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


def test_an_arm_node_that_was_held_up_blames_nobody_else(bench):
    """What the others sent meanwhile still waits for it when it goes on."""
    harness = up(bench, "ur5_pick")
    harness.track()
    harness.streaming = False
    assert harness.until_mode(ArmStatus.HOLDING)
    process = bench.processes["arm"]
    for _ in range(3):
        process.send_signal(signal.SIGSTOP)
        bench.until(lambda: False, 0.7)  # longer than grants and heartbeats are valid
        process.send_signal(signal.SIGCONT)
        since = time.time_ns()
        assert bench.until(lambda: stamp_ns(harness.statuses[-1]) > since + 300_000_000)  # noqa: B023
        assert harness.mode() == ArmStatus.HOLDING, harness.statuses[-1].reason
    bench.stop_granting()
    assert harness.until_mode(ArmStatus.STOPPED), "nobody grants: that is no hold-up"

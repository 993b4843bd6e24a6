"""The arm node, with the real franky client: what it follows, what stops it, and what frees it again."""

from __future__ import annotations

import signal
import time
from itertools import pairwise

import pytest
from forked_bid import start_bid
from geometry_msgs.msg import PoseStamped
from nodes.arm_harness import MARGIN_S, SPEED, START_S, STATE_PERIOD_S, age_s, speed, stopping, up
from qos import EVERY_STATE, STATE, TRANSFORMS
from ros_bench import Bench
from ros_domain import enter_domain
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import ArmStatus, SafetyState
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.stamps import stamp_ns


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One arm for the tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        enter_domain(patch)
        bench = Bench(tmp_path_factory.mktemp("arm"))
        try:
            yield up(bench, "franka_place")
        finally:
            bench.close()


@pytest.fixture
def harness(shared):
    """The arm at rest, whatever the test before did to it."""
    shared.rest()
    return shared


def test_follows_chunks_and_stops_by_itself_when_they_cease(harness):
    harness.track()
    assert harness.bench.until(lambda: harness.moved() > 0.02, 20.0)
    expected = SPEED * (time.time_ns() - harness.started_ns) / NANOSECONDS
    assert harness.moved() == pytest.approx(expected, abs=0.012)
    assert harness.statuses[-1].source == "policy" and harness.statuses[-1].reason == ""
    chunk = harness.cease()
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


def test_the_end_of_the_safety_process_stops_the_arm(harness):
    stop_by_ending_safety(harness, signal.SIGTERM)


def stop_by_ending_safety(harness, kind):
    safety = harness.hand_over_to_safety()
    harness.track(steps=15)
    safety.send_signal(kind)
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "safety" in harness.statuses[-1].reason
    assert harness.sent[-1].covers(time.time_ns())


def test_bid_reset_frees_arm_and_safety(harness, tmp_path):
    received: list[SafetyState] = []
    harness.bench.node.create_subscription(SafetyState, "/safety/state", received.append, EVERY_STATE)
    harness.hand_over_to_safety()
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
    assert harness.bench.until(lambda: len(harness.statuses) > 60)
    frozen.send_signal(signal.SIGSTOP)
    try:
        assert harness.until_mode(ArmStatus.FAULT)
        count = len(harness.statuses)
        assert harness.bench.until(lambda: len(harness.statuses) > count + 10)
    finally:
        frozen.send_signal(signal.SIGCONT)
    alive = [stamp_ns(status) for status in harness.statuses if status.mode == ArmStatus.HOLDING]
    assert len(alive) == len(set(alive)) > 60


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


def test_the_kill_of_the_safety_process_stops_the_arm(harness):
    """The last test: the graph knows the publishers of a killed process for 20 s, in which no other may take over."""
    stop_by_ending_safety(harness, signal.SIGKILL)

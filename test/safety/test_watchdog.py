import math
from dataclasses import replace

import pytest

from bid_ros.safety.grants import Grants
from bid_ros.safety.verdict import ACCEPTED, Action, refused
from bid_ros.safety.watchdog import State, Watchdog

MS = 1_000_000
LIMITS = {"camera": 0.3, "policy": 0.3, "arm": 0.2}


def made(**fields):
    return Watchdog(**{"deadlines": LIMITS, **fields})


@pytest.fixture
def running():
    """An armed watchdog at 0 ns."""
    watchdog = made()
    for name in LIMITS:
        watchdog.beat(name, 0)
    watchdog.tick(0)
    assert watchdog.state is State.RUNNING
    return watchdog


def beat_all(watchdog, steady_ns):
    for name in LIMITS:
        watchdog.beat(name, steady_ns)


def test_nothing_is_forwarded_until_every_required_node_was_heard():
    watchdog = made()
    assert watchdog.state is State.WAITING and not watchdog.stopped
    assert watchdog.reason == "waiting for camera, policy, arm"
    assert not watchdog.judge(ACCEPTED, 0)
    watchdog.beat("policy", MS)
    watchdog.beat("camera", MS)
    assert not watchdog.tick(2 * MS)
    assert watchdog.reason == "waiting for arm" and watchdog.cause.rule == ""
    assert not watchdog.judge(ACCEPTED, 2 * MS)
    watchdog.beat("arm", 3 * MS)
    assert watchdog.judge(ACCEPTED, 4 * MS)
    assert watchdog.state is State.RUNNING and watchdog.reason == ""


def test_a_node_that_died_during_the_start_is_waited_for_again_and_stops_nothing():
    watchdog = made()
    watchdog.beat("camera", 0)
    watchdog.beat("policy", 900 * MS)
    watchdog.beat("arm", 900 * MS)
    assert not watchdog.tick(900 * MS)
    assert watchdog.state is State.WAITING and watchdog.reason == "waiting for camera"


def test_before_anybody_was_in_charge_silence_leads_back_to_waiting():
    watchdog = made(settle_s=0.1)
    watchdog.granted = False
    for step in (0, 50, 150):
        beat_all(watchdog, step * MS)
    watchdog.tick(150 * MS)
    assert watchdog.state is State.RUNNING
    watchdog.beat("policy", 900 * MS)
    watchdog.beat("arm", 900 * MS)
    assert not watchdog.tick(900 * MS)
    assert watchdog.state is State.WAITING and watchdog.reason == "waiting for camera"
    assert not watchdog.judge(ACCEPTED, 900 * MS)
    for step in (1000, 1100, 1200):  # it settles again
        beat_all(watchdog, step * MS)
        watchdog.tick(step * MS)
    assert watchdog.state is State.RUNNING
    watchdog.granted = True
    assert watchdog.tick(2000 * MS) and watchdog.state is State.STOPPED


def test_it_arms_only_after_everyone_was_heard_without_a_gap():
    watchdog = made(settle_s=1.0)
    for step in range(0, 900, 100):
        beat_all(watchdog, step * MS)
        assert not watchdog.judge(ACCEPTED, step * MS)
    assert watchdog.state is State.WAITING
    assert watchdog.reason == "waiting for all nodes to settle"
    # A gap begins the second anew, and stops nothing.
    for step in range(1300, 2300, 100):
        beat_all(watchdog, step * MS)
        assert not watchdog.judge(ACCEPTED, step * MS)
    beat_all(watchdog, 2301 * MS)
    assert watchdog.judge(ACCEPTED, 2302 * MS)
    assert watchdog.reason == ""


@pytest.mark.parametrize("silent", LIMITS)
def test_silence_beyond_the_deadline_latches(running, silent):
    limit_ns = round(LIMITS[silent] * 1e9)
    for steady_ns in (limit_ns // 2, limit_ns):
        for name in set(LIMITS) - {silent}:
            running.beat(name, steady_ns)
    assert not running.tick(limit_ns)
    assert running.tick(limit_ns + MS)
    assert running.cause.rule == f"heartbeat:{silent}"
    assert running.cause.measured == pytest.approx(LIMITS[silent] + 0.001)
    assert running.cause.limit == LIMITS[silent]
    assert silent in running.reason
    assert not running.judge(ACCEPTED, limit_ns + MS)


def test_a_chunk_is_not_forwarded_in_the_gap_between_two_ticks(running):
    assert not running.judge(ACCEPTED, 400 * MS)
    assert running.stopped


def test_a_gap_that_ended_between_two_ticks_is_still_noticed(running):
    beat_all(running, 400 * MS)
    assert running.tick(401 * MS)
    assert running.cause.rule.startswith("heartbeat:")


def test_another_arm_that_stops_stops_this_one_until_it_is_free_again(running):
    running.partner("right", "")
    assert running.judge(ACCEPTED, MS)
    running.partner("right", "no sign of life from 'arm'")
    assert running.tick(2 * MS) and not running.judge(ACCEPTED, 2 * MS)
    assert running.cause.rule == "partner" and running.reason == "the arm 'right' stopped: no sign of life from 'arm'"
    beat_all(running, 3 * MS)
    assert running.reset(3 * MS) == "not reset: the arm 'right' stopped: no sign of life from 'arm'"
    running.partner("right", "")
    assert running.stopped, "only a reset clears a stop"
    assert running.reset(4 * MS) == "" and running.judge(ACCEPTED, 4 * MS)


def test_two_arms_that_stopped_for_causes_of_their_own_do_not_wait_for_each_other():
    arms = {name: made() for name in ("left", "right")}

    def tell(steady_ns):
        """Let each hear the other, as the safety node does."""
        for (name, own), other in zip(arms.items(), reversed(arms.values()), strict=True):
            beat_all(own, steady_ns)
            own.tick(steady_ns)
            stopped = own.stopped and own.cause.rule != "partner"
            other.partner(name, own.reason if stopped else "")

    tell(0)
    for watchdog in arms.values():
        watchdog.judge(refused("workspace", "outside"), MS)
    tell(2 * MS)
    assert {watchdog.cause.rule for watchdog in arms.values()} == {"workspace"}
    assert arms["left"].reset(3 * MS) == "not reset: the arm 'right' stopped: outside" and arms["left"].stopped
    tell(4 * MS)
    assert arms["right"].reset(5 * MS) == ""
    tell(6 * MS)
    assert arms["left"].reset(7 * MS) == ""
    tell(8 * MS)
    assert {watchdog.state for watchdog in arms.values()} == {State.RUNNING}


def test_a_stop_is_told_once_whatever_caused_it(running):
    running.judge(refused("workspace", "outside", 1.0, 0.7), MS)
    assert running.tick(2 * MS)
    assert not running.tick(3 * MS)
    running.reset(4 * MS)
    assert not running.tick(5 * MS)


@pytest.mark.parametrize(
    "rule",
    [
        "finite",
        "shape",
        "frame",
        "workspace",
        "speed",
        "acceleration",
        "jerk",
        "rotation",
        "turn_rate",
        "tilt",
        "gripper",
        "jump",
        "source",
        "new",
    ],
)
def test_one_refusal_latches_with_its_values(running, rule):
    assert not running.judge(refused(rule, "because", 2.0, 1.0), MS)
    assert (running.state, running.cause.rule, running.reason) == (State.STOPPED, rule, "because")
    assert (running.cause.measured, running.cause.limit) == (2.0, 1.0)
    assert not running.judge(ACCEPTED, 2 * MS)
    assert (running.action, running.verdict) == (Action.STOP, running.cause)


def test_a_tolerated_refusal_warns_until_the_next_chunk_passes(running):
    assert (running.action, running.verdict) == (Action.NONE, ACCEPTED)
    late = refused("time", "late", 0.6, 0.5)
    running.judge(late, MS)
    assert (running.action, running.verdict, running.reason) == (Action.WARN, late, "")
    assert running.judge(ACCEPTED, MS)
    assert (running.action, running.verdict) == (Action.NONE, ACCEPTED)
    running.judge(refused("speed", "fast"), MS)
    assert running.action is Action.STOP
    assert running.reset(2 * MS) == "" and running.action is Action.NONE


@pytest.mark.parametrize("rule", ["time", "measurement"])
def test_late_chunks_latch_only_after_several_in_a_row(running, rule):
    late = refused(rule, "late", 0.6, 0.5)
    for _ in range(4):
        assert not running.judge(late, MS)
    assert running.judge(ACCEPTED, MS)
    for _ in range(4):
        running.judge(late, MS)
    assert running.state is State.RUNNING
    running.judge(late, MS)
    assert running.state is State.STOPPED and running.cause.rule == rule
    assert "5 chunks in a row" in running.reason and running.cause.measured == 0.6


def test_the_late_limit_is_configurable():
    watchdog = made(late_limit=1)
    beat_all(watchdog, 0)
    watchdog.judge(refused("time", "late"), MS)
    assert watchdog.stopped


def test_late_chunks_while_waiting_are_not_counted_but_a_broken_one_latches():
    watchdog = made()
    for _ in range(10):
        watchdog.judge(refused("time", "late"), 0)
    assert not watchdog.stopped
    watchdog.judge(refused("finite", "NaN"), 0)
    assert watchdog.stopped
    assert watchdog.reset(MS) == ""
    assert watchdog.state is State.WAITING


def test_the_first_cause_is_kept(running):
    running.judge(refused("speed", "fast", 1.0, 0.5), MS)
    running.judge(refused("finite", "NaN"), 2 * MS)
    running.tick(10_000 * MS)
    assert running.cause.rule == "speed"


def test_heartbeats_and_good_chunks_never_clear_a_stop(running):
    running.judge(refused("speed", "fast"), MS)
    for step in range(2, 1000, 100):
        beat_all(running, step * MS)
        assert not running.judge(ACCEPTED, step * MS)
    assert running.stopped


def test_reset_leaves_nothing_behind(running):
    for _ in range(4):
        running.judge(refused("time", "late"), MS)
    running.judge(refused("speed", "fast", 1.0, 0.5), MS)
    assert running.reset(2 * MS) == ""
    assert (running.state, running.cause.rule, running.reason) == (State.RUNNING, "", "")
    assert math.isnan(running.cause.measured) and math.isnan(running.cause.limit)
    for _ in range(4):
        running.judge(refused("time", "late"), 3 * MS)
    assert not running.stopped


def test_reset_is_refused_while_a_heartbeat_is_missing(running):
    running.tick(500 * MS)
    running.beat("camera", 500 * MS)
    running.beat("arm", 500 * MS)
    refusal = running.reset(501 * MS)
    assert "not reset" in refusal and "policy" in refusal
    assert running.stopped and not running.judge(ACCEPTED, 502 * MS)
    running.beat("policy", 503 * MS)
    assert running.reset(504 * MS) == ""
    assert running.judge(ACCEPTED, 505 * MS)


def test_a_robot_fault_latches_and_holds_off_the_reset(running):
    assert running.arm_fault("reflex: collision", MS)
    assert running.cause.rule == "fault" and "reflex: collision" in running.reason
    assert not running.arm_fault("reflex: collision", 2 * MS)
    assert "reflex: collision" in running.reset(3 * MS)
    assert not running.arm_fault("", 4 * MS)
    assert running.stopped, "a fault that went away must not clear the stop"
    assert running.reset(5 * MS) == ""
    assert running.state is State.RUNNING


def test_names_that_are_not_required_are_ignored(running):
    running.beat("monitor", MS)
    running.tick(2 * MS)
    assert not running.stopped


def test_resetting_what_runs_changes_nothing(running):
    assert running.reset(MS) == ""
    assert running.judge(ACCEPTED, 2 * MS)


def test_a_grant_that_nobody_renewed_latches_with_who_and_how_long(running):
    running.lapse(None)
    assert not running.stopped
    grants = Grants()
    grants.renew("episode", ("policy",), 500 * MS, 0)
    grants.use("policy")
    lapse = grants.lapsed(501 * MS)
    running.lapse(lapse)
    assert (running.cause.rule, running.cause.measured, running.cause.limit) == ("grant", 0.5, 0.5)
    assert running.reason == str(lapse)
    assert "'policy'" in running.reason and "0.50 s" in running.reason
    assert not running.judge(ACCEPTED, MS)


def test_a_stop_for_late_chunks_has_the_last_one_s_values(running):
    for age_s in (0.6, 0.7, 0.8, 0.9, 1.0):
        running.judge(refused("time", f"the age is {age_s} s", age_s, 0.5, round(10 * age_s)), MS)
    assert running.reason == "5 chunks in a row were refused, the last because the age is 1.0 s"
    assert (running.cause.measured, running.cause.limit, running.cause.row) == (1.0, 0.5, 10)


def test_silence_of_exactly_the_limit_still_arms():
    watchdog = made()
    watchdog.beat("camera", 0)
    watchdog.beat("policy", 0)
    watchdog.beat("arm", 300 * MS)
    assert watchdog.judge(ACCEPTED, 300 * MS)


def test_a_reset_while_nodes_are_still_awaited_needs_no_heartbeats():
    watchdog = made()
    watchdog.beat("camera", 0)
    watchdog.judge(refused("finite", "NaN"), MS)
    assert watchdog.stopped
    assert watchdog.reset(1000 * MS) == ""
    assert watchdog.state is State.WAITING and watchdog.reason == "waiting for camera, policy, arm"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"deadlines": {}}, "deadlines: no name is watched; valid is one or more"),
        ({"deadlines": {"arm": 0.0}}, "deadlines: the limit of 'arm' is 0.0 s; valid is a positive finite number"),
        (
            {"deadlines": {"arm": float("nan")}},
            "deadlines: the limit of 'arm' is nan s; valid is a positive finite number",
        ),
        ({"late_limit": 0}, "late_limit is 0; valid is 1 or more"),
        ({"settle_s": -1.0}, "settle_s is -1.0; valid is 0 to 60"),
        ({"settle_s": 60.5}, "settle_s is 60.5; valid is 0 to 60"),
    ],
)
def test_impossible_configurations_are_refused(fields, message):
    with pytest.raises(ValueError) as error:
        made(**fields)
    assert str(error.value) == message


@pytest.mark.parametrize("action", [Action.SCALE, Action.WARN])
def test_a_chunk_that_was_slowed_or_warned_of_is_forwarded_and_told_until_the_next_one(running, action):
    told = replace(refused("speed", "too fast", 0.6, 0.5, 3), ok=True, action=action)
    assert running.judge(told, MS)
    assert running.action is action and running.verdict is told and running.state is State.RUNNING
    assert running.judge(ACCEPTED, 2 * MS) and running.action is Action.NONE


def test_a_slowed_chunk_leaves_no_stop_behind_it(running):
    told = replace(refused("speed", "too fast", 0.6, 0.5), ok=True, action=Action.SCALE)
    running.judge(refused("workspace", "outside"), MS)
    assert not running.judge(told, 2 * MS)
    assert running.action is Action.STOP and running.verdict.rule == "workspace"


def test_a_stop_for_silence_says_what_the_silent_node_said_last_and_once(running):
    assert not running.explain("camera", "camera 'wrist' shows nothing"), "nothing has stopped"
    for name in ("policy", "arm"):
        running.beat(name, 150 * MS)
    assert running.tick(301 * MS) and running.cause.rule == "heartbeat:camera"
    assert not running.explain("policy", "no decision") and not running.explain("camera", "")
    assert running.explain("camera", "camera 'wrist' shows nothing: its image is black")
    assert running.reason == (
        "heartbeat of camera is 301 ms old; the limit is 300 ms; "
        "it says: camera 'wrist' shows nothing: its image is black"
    )
    assert not running.explain("camera", "something else")


def test_the_margins_of_heartbeats_count_while_somebody_is_in_charge(running):
    running.granted = False
    running.tick(150 * MS)
    assert set(running.margins.values()) == {0.0}, "those of the fixture"
    running.granted = True
    running.tick(150 * MS)
    assert running.margins == pytest.approx(
        {"heartbeat of camera": 0.5, "heartbeat of policy": 0.5, "heartbeat of arm": 0.75}
    )


def test_somebody_else_who_moves_the_arm_stops_it_and_holds_off_the_reset(running):
    running.stranger("")
    assert not running.stopped and running.reset(MS) == ""
    running.stranger("node 'other' publishes what moves the arm")
    assert (running.state, running.cause.rule) == (State.STOPPED, "publisher")
    assert running.reason == "node 'other' publishes what moves the arm"
    assert running.reset(2 * MS) == "not reset: node 'other' publishes what moves the arm"
    running.stranger("")
    assert running.stopped, "who went away does not clear the stop"
    assert running.reset(3 * MS) == "" and running.state is State.RUNNING


def test_silence_is_judged_when_this_process_could_have_heard(running):
    """It was held up: the beats wait until 400 ms, and nobody was silent beyond the limit before."""
    for name in LIMITS:
        running.beat(name, 400 * MS, 190 * MS)
    assert not running.tick(400 * MS) and running.state is State.RUNNING
    assert running.tick(601 * MS) and running.cause.rule == "heartbeat:arm"
    assert running.cause.measured == pytest.approx(0.201), "since the beat, whenever it was judged"


@pytest.mark.parametrize(("judged_ms", "age_s"), [(350, 0.35), (400, 0.4), (900, 0.4)])
def test_silence_before_it_was_held_up_still_stops(running, judged_ms, age_s):
    """Never judged later than the beat came."""
    running.beat("camera", 400 * MS, judged_ms * MS)
    assert running.cause.rule == "heartbeat:arm" and running.cause.measured == pytest.approx(age_s)

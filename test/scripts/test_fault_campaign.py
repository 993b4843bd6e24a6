"""What the fault campaign makes of a recorded motion, of what nodes say, and of what a run leaves."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fault_campaign.course import WIDTH, Trace, course, read_trace
from fault_campaign.fault import Fault
from fault_campaign.images import write_sources
from fault_campaign.judging import Outcome, Reason, judge, told_by_run
from fault_campaign.strangers import strangers
from fault_campaign.table import NOT_TRIED, missed_bars, table
from fault_campaign.witness import Witness

from bid_msgs.msg import ActionChunk, EpisodeEvent
from bid_ros.cameras.config import load_cameras
from bid_ros.core.topics import EPISODE_EVENT, TOPICS
from bid_ros.nodes.topics import publisher

LOW, HIGH = np.array([-9.0, -9.0, -9.0]), np.array([9.0, 9.0, 9.0])
STEP_S, FAULT_S, END_S = 0.005, 1.0, 6.0
OUTCOME = Outcome([Reason("arm/status", 0.3, "no sign of life from 'policy' for 0.25 s", True)], [], [], 1.0, 1)
POLICY = Fault("policy-killed", "processes", "policy killed", lambda _: None, lambda _: 0.25)
ROBOT = SimpleNamespace(task=SimpleNamespace(limits=SimpleNamespace(max_speed=0.5)))


def moved(speed_at, times=None, simulated=None) -> Trace:
    """A tool that goes along x at a speed that depends on the simulated time."""
    simulated = np.arange(0.0, END_S, STEP_S) if simulated is None else simulated
    speeds = np.array([speed_at(second) for second in simulated])
    steps = np.diff(simulated, prepend=simulated[0])
    tool = np.zeros((len(simulated), 3))
    tool[:, 0] = np.cumsum(speeds * steps)
    return Trace(simulated if times is None else times, simulated, tool)


def judged(trace: Trace):
    return course(trace, FAULT_S, END_S, LOW, HIGH)


def braking(second: float) -> float:
    """0.2 m/s, from 1.25 s to 1.35 s down to rest."""
    return float(np.interp(second, [1.25, 1.35], [0.2, 0.0]))


def test_time_to_rest_peak_and_way_of_an_arm_that_brakes():
    found = judged(moved(braking))
    assert found.rest_s == pytest.approx(0.35, abs=0.025)
    assert found.again_s is None
    assert (found.before, found.peak) == pytest.approx((0.2, 0.2), abs=1e-6)
    assert found.far == pytest.approx(0.2 * 0.25 + 0.01, abs=2e-3)
    assert found.outside == 0.0


def test_an_arm_that_goes_on_is_not_at_rest():
    assert judged(moved(lambda _: 0.1)).rest_s is None


def test_a_moment_of_rest_while_it_turns_back_is_no_rest():
    found = judged(moved(lambda second: 0.0 if 1.2 < second < 1.45 or second > 2.0 else 0.1))
    assert found.rest_s == pytest.approx(1.0, abs=0.03)


def test_an_arm_that_moves_again_within_three_seconds_is_found_and_later_is_not():
    again = judged(moved(lambda second: 0.1 if second < 1.2 or 3.0 < second < 3.2 else 0.0))
    assert again.rest_s == pytest.approx(0.2, abs=0.03) and again.again_s == pytest.approx(2.0, abs=0.03)
    assert judged(moved(lambda second: 0.1 if second < 1.2 or second > 4.5 else 0.0)).again_s is None


def test_an_arm_that_creeps_below_the_speed_of_rest_is_at_rest():
    assert judged(moved(lambda second: 0.2 if second < FAULT_S else 0.004)).rest_s == pytest.approx(0.0, abs=0.03)


def test_a_peak_between_fault_and_rest_counts_and_one_before_does_not():
    faster = moved(lambda second: 0.9 if 1.1 < second < 1.15 else 0.3 if second < 0.3 else braking(second))
    found = judged(faster)
    assert found.peak == pytest.approx(0.9, abs=0.01) and found.before == pytest.approx(0.2, abs=1e-6)


def test_a_busy_computer_that_holds_the_twin_up_makes_no_speed():
    """For 0.2 s the physics stands still, then it catches up within 20 ms of this computer's time."""
    simulated = np.arange(0.0, END_S, STEP_S)
    times = np.interp(simulated, [0.0, 1.1, 1.3, END_S], [0.0, 1.3, 1.32, END_S])
    found = judged(moved(braking, times, simulated))
    assert found.peak == pytest.approx(0.2, abs=1e-6)
    assert found.rest_s == pytest.approx(0.37, abs=0.03)


def test_a_twin_that_is_slower_than_this_computer_is_known_by_its_time():
    simulated = np.arange(0.0, END_S, STEP_S)
    assert judged(moved(braking, 2.0 * simulated, simulated)).real_time == pytest.approx(0.5, abs=0.01)
    assert judged(moved(braking)).real_time == pytest.approx(1.0, abs=0.01)


def test_a_tool_that_leaves_the_workspace_is_outside_by_that_much():
    trace = moved(braking)
    edge = np.array([trace.tool[-1, 0] - 0.02, 9.0, 9.0])
    assert course(trace, FAULT_S, END_S, LOW, edge).outside == pytest.approx(0.02, abs=1e-6)


def test_a_trace_is_read_up_to_its_last_whole_row(tmp_path):
    rows = np.arange(3 * WIDTH, dtype=float).reshape(3, WIDTH)
    (tmp_path / "trace.bin").write_bytes(rows.tobytes()[:-5])
    trace = read_trace(tmp_path / "trace.bin", lambda joints: joints[:3])
    assert trace.times.tolist() == [0.0, 9.0] and trace.simulated.tolist() == [1.0, 10.0]
    assert trace.tool[1].tolist() == [11.0, 12.0, 13.0]


def judge_of(found, fault=POLICY, outcome=OUTCOME, resets=()):
    return judge(fault, ROBOT, found, outcome, list(resets))["wrong"]


def test_a_trial_inside_every_bar_has_nothing_wrong():
    assert judge_of(judged(moved(braking))) == []


def test_each_bar_that_is_missed_is_said():
    late = judged(moved(lambda second: braking(second - 0.8)))
    assert judge_of(late) == ["at rest 0.91 s after the deadline"]
    assert judge_of(judged(moved(lambda _: 0.1))) == ["not at rest"]
    assert "the limit is 0.5" in judge_of(judged(moved(lambda second: 4 * braking(second))))[0]
    found = judged(moved(braking))
    assert judge_of(found, outcome=replace(OUTCOME, reasons=[])) == ["no reason"]
    assert judge_of(found, outcome=replace(OUTCOME, left=["safety (T)"])) == ["left running: safety (T)"]
    tardy = replace(OUTCOME, reasons=[Reason("run.json", 4.0, "aborted", True)])
    assert judge_of(found, outcome=tardy) == ["a reason after 4.00 s only"]


def test_a_motion_after_the_run_has_reset_the_stop_is_no_motion_again():
    again = judged(moved(lambda second: 0.1 if second < 1.2 or 3.0 < second < 3.2 else 0.0))
    assert judge_of(again)[0].startswith("moved again after 2.0")
    assert judge_of(again, resets=[1.5]) == []


def test_what_nothing_has_to_stop_may_not_be_stopped_unless_it_may():
    fault = replace(POLICY, deadline=lambda _: None)
    found = judged(moved(lambda _: 0.1))
    assert judge_of(found, fault)[0].startswith("stopped: no sign of life")
    assert judge_of(found, replace(fault, may_stop=True)) == []


def test_a_run_tells_its_stops_and_its_end_but_not_that_the_campaign_ended_it(tmp_path):
    (tmp_path / "run.json").write_text(
        json.dumps({"stops": [{"outcome": "stopped: speed"}], "ended": {"outcome": "aborted: shut down"}})
    )
    assert [item.text for item in told_by_run(tmp_path, 0.0)] == ["stopped: speed"]
    assert told_by_run(tmp_path / "nowhere", 0.0) == []


def test_the_table_says_what_was_tried_how_often_and_what_was_not():
    row = judge(POLICY, ROBOT, judged(moved(braking)), OUTCOME, [])
    row |= {"fault": POLICY.name, "group": POLICY.group, "task": "ur5_pick"}
    row["reasons"] = [vars(item) for item in OUTCOME.reasons]
    missed = {**row, "wrong": ["not at rest"], "rest_s": None}
    lines = table([POLICY], ["franka_place", "ur5_pick"], [row, row, missed]).splitlines()
    assert lines[2].startswith("| policy killed | franka_place | 0 |") and NOT_TRIED in lines[2]
    assert lines[3].startswith("| policy killed | ur5_pick | 3 (0) | 0.11, 0.11, 0.11 s | 0.20 m/s |")
    assert "1 of 3: not at rest" in lines[3] and "no sign of life from 'policy'" in lines[3]


def test_a_slow_twin_excuses_times_and_speeds_and_nothing_else():
    late = replace(judged(moved(lambda second: 4 * braking(second - 0.8))), real_time=0.5)
    again = replace(late, again_s=2.0)
    for found, outcome, counts in (
        (late, OUTCOME, []),
        (late, replace(OUTCOME, reasons=[Reason("run.json", 4.0, "aborted", True)]), []),
        (late, replace(OUTCOME, reasons=[]), ["no reason"]),
        (late, replace(OUTCOME, left=["safety (T)"]), ["left running: safety (T)"]),
        (again, OUTCOME, ["moved again after 2.00 s"]),
        (replace(late, rest_s=None), OUTCOME, ["not at rest"]),
    ):
        row = judge(POLICY, ROBOT, found, outcome, [])
        row |= {"fault": POLICY.name, "group": POLICY.group, "task": "ur5_pick"}
        row["reasons"] = [vars(item) for item in outcome.reasons]
        assert len(row["wrong"]) > len(counts) and missed_bars(row) == counts
        assert missed_bars({**row, "real_time": 1.0}) == row["wrong"]
        fine = {**row, "wrong": [], "paced": [], "real_time": 1.0}
        line = table([POLICY], ["ur5_pick"], [fine, row]).splitlines()[2]
        assert "| 2 (1) |" in line and all(f"1 of 2: {sentence}" in line for sentence in counts)


def test_an_arm_that_stood_when_its_twin_ended_with_the_run_is_at_rest():
    short = moved(braking, simulated=np.arange(0.0, 1.45, STEP_S))
    assert judged(short).rest_s == pytest.approx(0.35, abs=0.025)
    assert judged(moved(braking, simulated=np.arange(0.0, 1.3, STEP_S))).rest_s is None


def test_the_camera_node_of_a_twin_takes_the_images_that_were_harmed(tmp_path):
    write_sources(file := tmp_path / "cameras.yaml", ["wrist"])
    camera = load_cameras(file, ["wrist"], twin=True)["wrist"]
    assert (camera.source, camera.address) == ("topic", "faulty/wrist")


@pytest.mark.parametrize("fault", list(strangers()), ids=lambda fault: fault.name)
def test_every_stranger_publishes(fault, ros_domain, monkeypatch):
    """The witness listens to safety/chunk as the arm node does, and to safety/state. Nobody listens to the others."""
    monkeypatch.setattr("fault_campaign.strangers.LASTS_S", 0.2)
    monkeypatch.setattr("fault_campaign.strangers.MATCHED_S", 1.0)
    witness, undo = Witness(ros_domain), []
    honest = SimpleNamespace(node=witness.node, chunk=ActionChunk(steps=2, dims=1, actions=[0.0, 0.1]))
    plan = SimpleNamespace(domain=ros_domain)
    begun = time.monotonic()
    try:
        sent = fault.inject(SimpleNamespace(system=SimpleNamespace(plan=plan), witness=honest, undo=undo))
    finally:
        for step in undo:
            step()
        witness.close()
    assert begun <= sent <= time.monotonic()
    if "safety/chunk" in fault.what:
        assert witness.chunk.sequence >= 1000


def test_the_witness_hears_why_an_episode_was_stopped(ros_domain):
    """Where arm node and safety node are frozen, nobody else is left to say it."""
    witness = Witness(ros_domain)
    sender = publisher(witness.node, EPISODE_EVENT, TOPICS[EPISODE_EVENT])
    try:
        for outcome in ("success", "stopped: neither was heard"):
            sender.publish(EpisodeEvent(kind=EpisodeEvent.END, outcome=outcome))
        end = time.monotonic() + 20.0
        while len(witness.events) < 2 and time.monotonic() < end:
            time.sleep(0.002)
    finally:
        witness.close()
    assert [(item.where, item.text, item.stopped) for item in witness.said] == [
        ("episode/event", "stopped: neither was heard", True)
    ]

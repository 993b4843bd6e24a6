"""Whose fault each stop is, said of the rules and sentences that safety node and arm node really publish."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import franky
import numpy as np
import pytest
from robots.franka.lockstep import Cell, Swing, ending

from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.fault_words import COMMANDS_LOST
from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY
from bid_ros.episodes.causes import (
    CAMERA,
    CLOCK,
    COMPUTER,
    NETWORK,
    PARTS,
    ROBOT,
    RULES,
    of_safety,
    outcome_of_end,
    outcome_of_safety,
    part_of_pause,
    rule_of_arm,
)
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import sentence
from bid_ros.robots.link import DriverLink
from bid_ros.robots.protocol import DriverRequest, DriverState, Mode, MotionOutcome
from bid_ros.robots.unheard import late_text
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.grants import Lapse
from bid_ros.safety.watchdog import Watchdog
from bid_ros.system.ended import Ended

SECOND = NANOSECONDS
DRIVER = Path(__file__).parents[1] / "robots" / "mute_driver.py"
LISTED = [
    ("heartbeat:camera", "heartbeat of camera is 310 ms old; the limit is 300 ms", CAMERA),
    ("heartbeat:policy", "heartbeat of policy is 310 ms old; the limit is 300 ms", COMPUTER),
    ("heartbeat:arm", "heartbeat of arm is 310 ms old; the limit is 300 ms", COMPUTER),
    ("grant", str(Lapse("policy", "episode", 0.5)), COMPUTER),
    ("waiting", "the safety node is waiting for arm", COMPUTER),
    ("measurement", "5 chunks in a row were refused, the last because the tool's position is not known", COMPUTER),
    ("publisher", "2 nodes publish /policy/chunk: /policy and /stranger; valid is one", NETWORK),
    ("fault", "the robot reports a fault: a reflex stopped the robot", ROBOT),
]
LIMITS = ("finite", "shape", "frame", "source", "workspace", "speed", "acceleration", "jerk", "rotation", "turn_rate")
MORE = ("turn_acceleration", "tilt", "gripper", "jump", "joint_position", "joint_speed", "joint_acceleration")


@pytest.mark.parametrize(("rule", "reason", "part"), LISTED)
def test_a_failure_of_no_policy_is_infrastructure_and_names_the_part(rule, reason, part):
    found = outcome_of_safety(rule, reason)
    assert (found.kind, found.code, found.text, found.success) == (INFRASTRUCTURE, part, f"stopped: {reason}", False)
    assert part in PARTS


def moving(twin: bool = False) -> tuple[Cell, Swing]:
    cell = Cell(FrankaConfig("172.16.0.2", translational_stiffness=2500.0, twin=twin))
    cell.run(0.05)
    assert cell.ask(DriverRequest.START, False) == ""
    swing = Swing(cell, False)
    cell.run(0.4, swing)
    assert not cell.state.fault
    return cell, swing


def blamed(fault: str, twin: bool = False) -> str:
    """The part that a fault of the robot names, as the safety node repeats it."""
    return outcome_of_safety("fault", f"the robot reports a fault: {fault}", twin=twin).code


def test_set_points_that_this_computer_did_not_send_are_no_fault_of_the_robot():
    with ending():
        cell, _ = moving()
        cell.run(0.3)
        assert "moved: it was stopped" in cell.state.fault
        assert (blamed(cell.state.fault), blamed(cell.state.fault, twin=True)) == (COMPUTER, COMPUTER)


@pytest.mark.parametrize(
    ("lie", "part"),
    [
        (lambda said, first, ms: replace(said, robot_ms=said.robot_ms + 1000), CLOCK),
        (lambda said, first, ms: replace(said, robot_ms=first.robot_ms), NETWORK),
        (lambda said, first, ms: replace(said, success_rate=0.3), NETWORK),
        (lambda said, first, ms: replace(said, joints=tuple(q + 1.0 for q in said.joints)), ROBOT),
    ],
    ids=["clock", "silent", "rate", "joints"],
)
def test_what_the_driver_of_a_robot_says_names_the_part_that_failed(lie, part):
    with ending():
        cell, swing = moving()
        cell.robot.tell(lie)
        for _ in range(100):
            if cell.status is None:
                cell.run(0.01, swing)
    assert cell.state.fault and blamed(cell.state.fault) == part, cell.state.fault


@pytest.mark.parametrize(("rate", "part"), [(0.75, COMPUTER), (1.0, ROBOT)])
def test_a_twin_that_braked_for_want_of_commands_tells_of_the_computer(rate, part):
    """Its torques step where it brakes; beside commands that all came they would be a lie."""
    with ending():
        cell, swing = moving(twin=True)
        cell.robot.tell(
            lambda said, first, ms: replace(
                said, success_rate=rate, torques=(said.torques[0] + 30.0 * (ms > 5), *said.torques[1:])
            )
        )
        for _ in range(100):
            if cell.status is None:
                cell.run(0.01, swing)
    fault = cell.state.fault
    assert fault and blamed(fault, twin=True) == part, fault
    assert ("received 75 % of the last 100 commands, so it braked" in fault) == (part == COMPUTER)


@pytest.mark.parametrize(("low_ms", "part"), [(150, ""), (260, COMPUTER)])
def test_a_twin_that_receives_too_few_commands_for_some_time_tells_of_the_computer(low_ms, part):
    """A busy computer holds a client up for a moment; datagrams in another order go on being lost."""
    with ending():
        cell, swing = moving(twin=True)
        cell.robot.tell(lambda said, first, ms: replace(said, success_rate=0.3 if ms <= low_ms else 1.0))
        cell.run(0.3, swing)
    fault = cell.state.fault
    assert (blamed(fault, twin=True) if fault else "") == part, fault
    assert ("received 30 % of the last 100 commands; valid is at least 50 %" in fault) == bool(part)


@pytest.mark.parametrize("end", ["frozen", "killed"])
def test_a_driver_process_that_hangs_or_was_killed_tells_of_the_computer(monkeypatch, end):
    monkeypatch.setenv("PYTHONPATH", str(DRIVER.parent))
    link = DriverLink(DRIVER.stem, FrankaConfig("172.16.0.2"), False, 0.1, "franky")
    state = DriverState(0, 0, Mode.IDLE, MotionOutcome.NONE, (0.0,) * 7, (0.0,) * 7, (0.0,) * 3, (0.0,) * 4, "", 1)
    try:
        if end == "killed":
            os.kill(link._process.pid, signal.SIGKILL)
            link._process.wait()
        said = ""
        while not said:  # it never beats, so the link ends it
            said = link.trouble(state)
        assert ("gave no sign of life" if end == "frozen" else "was ended by signal 9") in said
        assert (blamed(said), blamed(said, twin=True)) == (COMPUTER, COMPUTER)
    finally:
        link.kill()


def test_commands_that_were_lost_on_the_way_to_a_robot_tell_of_the_network_and_in_a_twin_of_the_computer():
    """What libfranka says is held against the twin in test/robots/franka/twin/test_conformance.py."""
    said = f'libfranka: Move command aborted: motion aborted by reflex! ["{COMMANDS_LOST}"]'
    fault = sentence("172.16.0.2", franky.ControlException(said))
    assert (blamed(fault), blamed(fault, twin=True)) == (NETWORK, COMPUTER)


def test_a_program_that_the_pendant_stopped_is_the_robots_though_the_advice_names_this_computer():
    fault = "robot at a stopped our program: look at the pendant, and check that nothing delays this computer"
    assert blamed(fault) == ROBOT


def test_a_twin_that_is_silent_tells_of_the_computer_and_its_reflex_does_not():
    assert outcome_of_safety("fault", "robot at 127.0.0.1 has been silent for 0.20 s", twin=True).code == COMPUTER
    silent = "has been silent for 0.20 s", "check cable and power"
    said = f"robot at 127.0.0.1 {late_text(*silent, twin=True)}, then reset"
    assert outcome_of_safety("fault", f"the robot reports a fault: {said}", twin=True).code == COMPUTER
    assert part_of_pause(said) == COMPUTER
    assert part_of_pause(f"robot at 172.16.0.2 {late_text(*silent, twin=False)}, then reset") == ROBOT
    assert outcome_of_safety("fault", "a reflex stopped the robot", twin=True).code == ROBOT
    assert outcome_of_safety("publisher", "2 nodes publish /grant: /a and /b", twin=True).code == NETWORK


@pytest.mark.parametrize(("pace", "kind"), [(0.5, INFRASTRUCTURE), (0.95, SAFETY)])
def test_a_limit_that_is_broken_in_a_twin_that_lags_tells_of_the_computer(pace, kind):
    found = outcome_of_safety("jump", "distance is 0.151 m", twin=True, pace=pace)
    assert (found.kind, "0.50 of real time" in found.text) == (kind, pace == 0.5)
    assert outcome_of_safety("jump", "distance is 0.151 m", twin=False, pace=pace).kind == SAFETY


@pytest.mark.parametrize("rule", [*LIMITS, *MORE, "joint_jump", "a_rule_of_tomorrow"])
def test_a_limit_that_the_policy_broke_is_safety_and_names_the_rule(rule):
    found = outcome_of_safety(rule, "too much")
    assert (found.kind, found.code) == (SAFETY, rule)


def test_every_rule_of_the_table_is_a_part():
    assert set(RULES.values()) == set(PARTS) - {CLOCK}, "of the clock speaks how late, or how early, a chunk is"


@pytest.mark.parametrize(
    ("age_s", "part"), [(0.8, COMPUTER), (3600.0, CLOCK), (-3600.0, CLOCK), (-0.9, CLOCK)], ids=str
)
def test_a_chunk_that_is_late_tells_of_the_computer_and_one_from_another_time_of_a_clock(task, age_s, part):
    now = 10_000 * SECOND
    middle = (np.array(task.limits.workspace_min) + np.array(task.limits.workspace_max)) / 2
    row = [*middle, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.04]
    chunk = ActionChunk(
        now - round(age_s * SECOND), task.dt_ns, np.tile(row, (16, 1)), frame_id=task.base_frame, source="policy"
    )
    watchdog = Watchdog({"policy": 1.0}, late_limit=2)
    watchdog.beat("policy", 0)
    watchdog.tick(0)
    for _ in range(2):
        watchdog.judge(Envelope(task).check(chunk, now, middle), 0)
    cause = watchdog.cause
    assert watchdog.stopped and cause.rule == "time"
    found = outcome_of_safety(cause.rule, cause.reason, cause.measured)
    assert (found.kind, found.code) == (INFRASTRUCTURE, part)


@pytest.mark.parametrize(
    ("reason", "fault", "rule"),
    [
        ("a reflex stopped the robot", True, "fault"),
        ("no sign of life from 'camera' for 0.30 s", False, "heartbeat:camera"),
        ("no sign of life from 'policy' for 0.30 s", False, "heartbeat"),
        (str(Lapse("policy", "episode", 0.5)), False, "grant"),
        ("2 nodes publish /safety/chunk: /safety and /stranger", False, "publisher"),
        ("gripper at 10.0.0.2 did not answer", False, "fault"),
        ("safety stopped: x is 0.9 m", False, "arm"),
    ],
)
def test_what_the_arm_node_says_by_itself_is_the_rule_that_safety_would_name(reason, fault, rule):
    assert rule_of_arm(reason, fault) == rule


def test_only_the_arm_that_heard_of_a_stop_leaves_the_reason_to_the_safety_node():
    assert of_safety("safety stopped: x is 0.9 m") and not of_safety("nobody renewed the grant of 'policy'")
    assert outcome_of_safety("arm", "safety stopped: x is 0.9 m").kind == SAFETY


@pytest.mark.parametrize(
    ("ended", "part", "text"),
    [
        (Ended("arm", -9), COMPUTER, "aborted: arm ended first (status -9, killed by SIGKILL)"),
        (Ended("camera", -11), COMPUTER, "aborted: camera ended first (status -11, killed by SIGSEGV)"),
        (Ended("camera", 1), CAMERA, "aborted: camera ended first (status 1)"),
        (Ended("arm", 1), ROBOT, "aborted: arm ended first (status 1)"),
        (Ended("policy", 1), COMPUTER, "aborted: policy ended first (status 1)"),
        (Ended("twin", None), COMPUTER, "aborted: twin hung"),
        (None, "shutdown", "aborted: shut down"),
    ],
)
def test_an_episode_in_which_the_run_ended_says_who_ended_it(ended, part, text):
    found = outcome_of_end(ended)
    assert (found.kind, found.code, found.text) == (INFRASTRUCTURE, part, text)


@pytest.mark.parametrize(
    ("reason", "part"),
    [
        ("no chunk of 'policy' for 0.6 s: images of 'wrist' have not changed for 0.5 s, though the tool moved", CAMERA),
        ("images of 'wrist' are stamped 3600.0 s ahead of this computer's clock: the clock of one was set", CLOCK),
        ("no chunk of 'policy' for 0.6 s: no new camera frames since the last decision", CAMERA),
        ("the clock of this computer was set back by 3600.0 s; older chunks are forgotten", CLOCK),
        ("nobody grants 'policy' the arm, though it sends chunks", COMPUTER),
        ("no chunk of 'policy' for 0.6 s: it says no reason", ""),
        ("the policy decides, and no chunk of it covers now", ""),
    ],
)
def test_the_reason_of_a_pause_names_the_part_that_failed_or_none(reason, part):
    assert part_of_pause(reason) == part

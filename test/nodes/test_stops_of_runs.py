"""A stop is not the end of a run: the episode node counts it, has it reset, and goes on with the next episode."""

from __future__ import annotations

import json
import signal

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from nodes.test_episode_node import START_S, Harness, Scene, picking
from qos import STATE
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.episodes.causes import ARM_ENDS, PACE
from bid_ros.episodes.stops import LEFT
from bid_ros.recording.events import FILE, check_events
from bid_ros.system.ended import Ended, note_end

RESETS = ["/arm/reset", "/safety/reset", "/arm/reset"]
WORKSPACE = ("workspace", "x is 0.900 m; the workspace is 0.300 to 0.700 m")
CAMERA = ("heartbeat:camera", "heartbeat of camera is 310 ms old; the limit is 300 ms")


class Stops:
    """Plays safety node and arm node that latch a stop and can be reset."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.called: list[str] = []
        self.refused: list[str] = []
        for name in set(RESETS):
            harness.bench.node.create_service(Trigger, name, lambda _, answer, name=name: self._on_reset(name, answer))

    def stop(self, rule: str, reason: str) -> None:
        self.harness.safety = SafetyState(state=SafetyState.STOPPED, rule=rule, reason=reason)
        self.harness.mode, self.harness.reason = ArmStatus.STOPPED, f"safety stopped: {reason}"

    def fault(self, reason: str) -> None:
        self.harness.mode, self.harness.reason = ArmStatus.FAULT, reason

    def _on_reset(self, name: str, answer: Trigger.Response) -> Trigger.Response:
        self.called.append(name)
        answer.success = not self.refused
        if self.refused:
            answer.message = self.refused.pop()
        elif name == "/safety/reset":
            self.harness.safety = SafetyState(state=SafetyState.RUNNING)
        elif self.harness.safety.state == SafetyState.RUNNING or self.harness.mode == ArmStatus.FAULT:
            self.harness.mode, self.harness.reason = ArmStatus.HOLDING, ""
        return answer


def started(harness: Harness, number: int) -> None:
    """Wait until so many episodes have begun."""
    assert harness.bench.until(lambda: harness.kinds().count(EpisodeEvent.START) == number, START_S)


def solve(harness: Harness, scene: Scene) -> None:
    """Put the cup onto the saucer, with the tool away."""
    scene.cup = [0.50, 0.20, 0.008]
    count = harness.kinds().count(EpisodeEvent.END)
    assert harness.bench.until(lambda: harness.kinds().count(EpisodeEvent.END) > count, START_S)
    scene.cup = [0.50, -0.10, 0.0]


def noted(harness: Harness, *kinds: str) -> list[dict[str, object]]:
    """Lines of the run's events of these kinds; the chain must be whole."""
    assert check_events(harness.out) == ""
    lines = [json.loads(line) for line in (harness.out / FILE).read_text().splitlines()]
    return [line for line in lines if line["kind"] in kinds]


def ends(harness: Harness) -> list[tuple[int, int, str]]:
    found = [event for event in harness.events if event.kind == EpisodeEvent.END]
    return [(event.episode, event.outcome_class, event.outcome_code) for event in found]


def test_in_a_twin_a_stopped_episode_has_failed_and_the_next_one_begins(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, episodes=3, seed=7)
    stops = Stops(harness)
    started(harness, 1)
    stops.refused = ["not reset: heartbeat of camera is 900 ms old"]
    stops.stop(*WORKSPACE)
    started(harness, 2)
    assert stops.called == ["/arm/reset", *RESETS], "a refused reset is tried again, from the beginning"
    solve(harness, scene)
    started(harness, 3)
    stops.stop(*CAMERA)
    status, run, output = harness.finish()
    assert status == 0, output
    assert ends(harness) == [(0, EpisodeEvent.SAFETY, "workspace"), (1, EpisodeEvent.TASK, "success"), (2, 3, "camera")]
    assert [item["outcome_code"] for item in run["results"]] == ["workspace", "success", "camera"]
    assert run["results"][0]["outcome"] == f"stopped: {WORKSPACE[1]}"
    assert (run["episodes"], run["counted"], run["successes"], run["ended"]) == (3, 2, 1, None)
    assert run["outcomes"]["infrastructure"] == {"camera": 1}
    first, last = run["stops"]
    assert (first["rule"], first["reset_by"], first["phase"]) == ("workspace", "run", "episode")
    assert 0 < first["reset_s"] < START_S and last["rule"] == "heartbeat:camera"
    assert "1 of 2 = 50%" in output and "not counted  1 of 3 episodes: camera 1" in output
    happened = [(line["kind"], line.get("by"), line["rule"]) for line in noted(harness, "stop", "reset")]
    for rule in ("workspace", "heartbeat:camera"):
        assert ("stop", "safety", rule) in happened
    resets = [(by, rule) for kind, by, rule in happened if kind == "reset"]
    assert {by for by, _ in resets} == {"run"} and ("run", "workspace") in resets
    phases = [(line["episode"], line["phase"]) for line in noted(harness, "episode")]
    assert phases == [(number, phase) for number in range(3) for phase in ("prepare", "start", "end")]
    last = noted(harness, "end")[-1]
    assert last["status"] == 0 and run["events"]["lines"] == last["line"]


def test_the_arm_that_hears_first_leaves_the_reason_to_the_safety_node(bench, root, tmp_path):
    harness, _ = picking(bench, root, tmp_path, episodes=1)
    stops = Stops(harness)
    started(harness, 1)
    harness.mode, harness.reason = ArmStatus.STOPPED, "safety stopped: too fast"
    told = []
    harness.bench.node.create_timer(0.1, lambda: told or (told.append(1), stops.stop("speed", "too fast")))
    status, run, _ = harness.finish()
    assert status == 0 and run["results"][0]["outcome_code"] == "speed"


def test_a_fault_counts_for_nobody_and_neither_does_a_success_of_a_twin_that_lost_time(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, episodes=3)
    stops = Stops(harness)
    started(harness, 1)
    stops.fault("a reflex stopped the robot")
    started(harness, 2)
    solve(harness, scene)
    started(harness, 3)
    said = DiagnosticStatus(name="twin", hardware_id="ur", values=[KeyValue(key=PACE, value="0.71")])
    publisher = bench.node.create_publisher(DiagnosticArray, "/diagnostics", STATE)
    bench.node.create_timer(0.05, lambda: publisher.publish(DiagnosticArray(status=[said])))
    solve(harness, scene)
    status, run, output = harness.finish()
    assert (status, run["counted"], run["successes"], run["not_counted_successes"]) == (0, 1, 1, 1)
    last = run["results"][2]
    assert last["outcome"] == "success, but the twin kept 0.71 of real time" and last["success"]
    assert (ends(harness)[2], harness.events[-1].success) == ((2, EpisodeEvent.INFRASTRUCTURE, "computer"), True)
    assert "not counted  2 of 3 episodes: computer 1, robot 1; with success: 1" in output
    assert (run["results"][0]["outcome_class"], run["results"][0]["outcome_code"]) == ("infrastructure", "robot")
    assert run["stops"][0]["rule"] == "fault"


def test_an_episode_that_stops_in_its_preparation_is_prepared_again_under_its_seed(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, episodes=1, seed=7)
    stops = Stops(harness)
    assert bench.until(lambda: harness.kinds() == [EpisodeEvent.PREPARE], START_S)
    stops.stop("acceleration", "acceleration is 6.259 m/s^2; the limit is 5.000 m/s^2")
    started(harness, 1)
    solve(harness, scene)
    status, run, output = harness.finish()
    assert (status, run["episodes"], run["successes"], run["results"][0]["seed"]) == (0, 1, 1, 7)
    assert [(stop["phase"], stop["outcome_code"]) for stop in run["stops"]] == [("preparation", "acceleration")]
    assert "it is prepared again" in output
    prepared = [event.seed for event in harness.events if event.kind == EpisodeEvent.PREPARE]
    assert prepared == [7, 7]


def test_three_failures_of_the_same_kind_in_a_row_end_the_run_with_a_sentence(bench, root, tmp_path):
    harness, _ = picking(bench, root, tmp_path, episodes=20)
    stops = Stops(harness)
    for number in (1, 2, 3):
        started(harness, number)
        stops.stop(*CAMERA)
    status, run, output = harness.finish()
    assert (status, run["episodes"], run["counted"]) == (3, 3, 0)
    assert "the run ends after 3 stops in a row that are not the policy's; the last, camera: stopped: " in output
    assert run["ended"]["outcome_code"] == "camera" and len(stops.called) == 6, "nobody resets the last one"


def test_a_twin_that_cannot_be_reset_ends_the_run_when_somebody_asks(bench, root, tmp_path):
    harness, _ = picking(bench, root, tmp_path, episodes=3)
    stops = Stops(harness)
    started(harness, 1)
    stops.refused = ["not reset: the robot reports a fault"] * 1000
    stops.stop(*WORKSPACE)
    assert bench.until(lambda: len(stops.called) > 2, START_S)
    bench.processes["episode"].send_signal(signal.SIGTERM)
    _, run, _ = harness.finish()
    assert run["ended"]["outcome"] == "aborted: shut down" and run["results"][0]["outcome_code"] == "workspace"


@pytest.mark.parametrize("by", ["safety", "arm"])
def test_at_a_robot_the_run_waits_for_the_reset_of_a_person_and_goes_on(bench, root, tmp_path, by):
    harness = Harness(bench, root, tmp_path, episodes=2)
    stops = Stops(harness)
    harness.begin()
    stops.stop(*WORKSPACE) if by == "safety" else stops.fault("a reflex stopped the robot")
    assert bench.until(lambda: EpisodeEvent.END in harness.kinds(), START_S)
    outcome = bench.node.create_client(SetBool, "/episode/outcome")
    assert bench.until(outcome.service_is_ready, START_S)
    judged = outcome.call_async(SetBool.Request(data=True))
    assert bench.until(judged.done, START_S)
    assert not judged.result().success, "a stopped episode would be a demonstration"
    assert judged.result().message.startswith("the episode ended as 'stopped: ")
    count = len(harness.grants)
    bench.until(lambda: False, 1.0)
    assert harness.kinds().count(EpisodeEvent.PREPARE) == 1 and not stops.called, "the run resets no robot"
    assert not any(grant.sources for _, grant in harness.grants[count:])
    service = f"/{by}/reset"
    bench.node.create_client(Trigger, service)
    bench.node.declare_parameter("speed", 1.0)
    bench.node.set_parameters([Parameter("speed", value=0.5)])
    bench.until(lambda: False, 0.3)
    harness.safety = SafetyState(state=SafetyState.RUNNING)
    harness.mode, harness.reason = ArmStatus.HOLDING, ""
    count = len(harness.grants)
    bench.until(lambda: False, 1.5)
    assert harness.kinds().count(EpisodeEvent.PREPARE) == 1, "a reset alone sets no robot in motion"
    assert not any(grant.sources for _, grant in harness.grants[count:])
    start = bench.node.create_client(Trigger, "/episode/start")
    future = start.call_async(Trigger.Request())
    assert bench.until(future.done, START_S)
    assert (future.result().success, future.result().message) == (True, LEFT)
    harness.begin(1)
    harness.judge(True)
    status, run, output = harness.finish()
    assert (status, run["episodes"], run["successes"]) == (0, 2, 1)
    assert run["stops"][0]["reset_by"] == "person"
    assert "the run waits: look at the robot, then: bid reset" in output
    me = bench.node.get_fully_qualified_name()
    assert [line["by"] for line in noted(harness, "reset") if line["of"] == by] == [me]
    assert [line["changed"] for line in noted(harness, "parameters") if line["node"] == me] == [{"speed": 0.5}]


def test_the_run_so_far_is_written_after_every_episode_and_the_end_says_which_node_ended_it(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, episodes=3)
    started(harness, 1)
    assert json.loads((harness.out / "run.json").read_text())["episodes"] == 0
    solve(harness, scene)
    started(harness, 2)
    assert json.loads((harness.out / "run.json").read_text())["successes"] == 1
    note_end(harness.out, Ended("camera", -9))  # as the front end does, before it asks everybody to end
    bench.processes["episode"].send_signal(signal.SIGTERM)
    _, run, output = harness.finish()
    sentence = "aborted: camera ended first (status -9, killed by SIGKILL)"
    assert [item["outcome"] for item in run["results"]] == ["success", sentence]
    assert (run["ended"]["outcome"], run["counted"]) == (sentence, 1)
    assert sentence in output
    assert noted(harness, "end")[-1]["outcome"] == sentence


def test_an_arm_node_that_is_asked_to_end_first_is_not_who_ended_the_run(bench, root, tmp_path):
    """All nodes are asked at once, and the arm may say its last word before this node hears of it."""
    harness, _ = picking(bench, root, tmp_path, episodes=3)
    started(harness, 1)
    note_end(harness.out, Ended("safety", -9))
    harness.mode, harness.reason = ArmStatus.STOPPED, ARM_ENDS
    bench.until(lambda: False, 0.5)
    bench.processes["episode"].send_signal(signal.SIGTERM)
    _, run, _ = harness.finish()
    sentence = "aborted: safety ended first (status -9, killed by SIGKILL)"
    assert ([item["outcome"] for item in run["results"]], run["stops"]) == ([sentence], [])

"""The episode node as a real process: its sequence, its outcomes and what it writes, with an arm played by the test."""

from __future__ import annotations

import json
import signal
import time
from itertools import pairwise

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from qos import COMMAND, EVENT, EVERY_COMMAND, EVERY_STATE, STATE
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Decision, EpisodeEvent, Grant, Heartbeat, SafetyState
from bid_msgs.srv import ResetEpisode
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.core.task import load_task
from bid_ros.core.topics import GRANT
from bid_ros.episodes.stops import LEFT
from bid_ros.nodes.ros_messages import pose_message, pose_stamped
from bid_ros.safety.shadow import Shadow
from bid_ros.tasks.picking import TASK as PICKING

START_S = 60.0
REQUIRED_KEYS = {
    *("episodes", "successes", "decisions", "missed", "decision_ms", "command_age_ms"),
    *("decoder", "samples", "bundle_sha256"),
}


class Harness:
    """Plays arm, safety node, policy and the person beside the robot."""

    def __init__(self, bench, root, tmp_path, task="franka_place", **parameters):
        self.bench = bench
        self.out = tmp_path / "out"
        self.events: list[EpisodeEvent] = []
        self.grants: list[tuple[float, Grant]] = []
        self.position, self.width = [0.5, 0.0, 0.3], 0.02
        self.mode, self.reason = ArmStatus.HOLDING, ""
        self.safety = SafetyState(state=SafetyState.RUNNING)
        self.also: list[SafetyState] = []
        self.decisions = self.missed = 0
        node = bench.node
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._states = node.create_publisher(SafetyState, "/safety/state", STATE)
        self._decisions = node.create_publisher(Decision, "/policy/decision", STATE)
        node.create_subscription(ChunkMessage, "/episode/chunk", self._follow, EVERY_COMMAND)
        node.create_subscription(EpisodeEvent, "/episode/event", self.events.append, EVENT)
        node.create_subscription(Grant, GRANT, lambda item: self.grants.append((time.monotonic(), item)), EVERY_STATE)
        node.create_timer(0.05, self._publish)
        self._start = node.create_client(Trigger, "/episode/start")
        self._outcome = node.create_client(SetBool, "/episode/outcome")
        content = yaml.safe_load((root / "config" / task / "task.yaml").read_text())
        file = tmp_path / "task.yaml"
        file.write_text(yaml.safe_dump({**content, "episode_timeout": 3.0}))
        given = {"task": str(file), "twin": False, "episodes": 1, "out": str(self.out), "labels": ["bid"]}
        bench.start("episode", {**given, **parameters})

    def _follow(self, message):
        rows = np.array(message.actions).reshape(message.steps, message.dims)
        self.position, self.width = rows[-1, :3], float(rows[-1, -1])

    def _publish(self):
        if self.mode is None:
            return
        status = ArmStatus(mode=self.mode, reason=self.reason, gripper_width=self.width, source="policy")
        status.command_age, status.tool = 0.05, pose_message(self.position, [1.0, 0.0, 0.0, 0.0])
        self._statuses.publish(status)
        for state in (self.safety, *self.also):
            self._states.publish(state)
        if self.kinds()[-1:] == [EpisodeEvent.START]:
            self.decisions += 1
            self._decisions.publish(Decision(decision_time=0.02, missed=self.missed, decoder="ema"))

    def kinds(self) -> list[int]:
        return [event.kind for event in self.events]

    def leave(self) -> str:
        """Let a robot move by itself; return what the person is told."""
        assert self.bench.until(self._start.service_is_ready, START_S)
        while True:
            future = self._start.call_async(Trigger.Request())
            assert self.bench.until(future.done, START_S)
            if future.result().success:
                return str(future.result().message)

    def begin(self, episode: int = 0):
        """Say that the object is in place, until the episode starts."""
        future = None

        def ask():
            nonlocal future
            if self._start.service_is_ready() and (future is None or future.done()):
                future = self._start.call_async(Trigger.Request())

        assert self.bench.until(lambda: self.kinds().count(EpisodeEvent.START) > episode, START_S, each=ask)

    def judge(self, success: bool):
        assert self.bench.until(lambda: self.decisions > 3, START_S)
        future = self._outcome.call_async(SetBool.Request(data=success))
        assert self.bench.until(future.done, START_S)

    def finish(self) -> tuple[int, dict, str]:
        assert self.bench.until(lambda: self.bench.processes["episode"].poll() is not None, START_S)
        status, output = self.bench.finish("episode")
        assert "Traceback" not in output
        return status, json.loads((self.out / "run.json").read_text()), output


class Scene:
    """Plays the twin of picking: its reset and where cup and saucer are."""

    def __init__(self, harness):
        self.harness = harness
        self.resets: list[tuple[int, float]] = []
        self.answer = ResetEpisode.Response(success=True)
        self.cup = [0.50, -0.10, 0.0]
        node = harness.bench.node
        self._cup = node.create_publisher(PoseStamped, "/ground_truth/cup_pose", STATE)
        self._saucer = node.create_publisher(PoseStamped, "/ground_truth/saucer_pose", STATE)
        node.create_service(ResetEpisode, "/twin/reset", self._on_reset)
        node.create_timer(0.1, self._publish)
        self.reset_ns, self.width_at_reset = 0, 0.0

    def _on_reset(self, request, response):
        self.resets.append((request.seed, request.target_speed))
        self.width_at_reset, self.reset_ns = self.harness.width, time.time_ns()
        response.success, response.message = self.answer.success, self.answer.message
        return response

    def _publish(self):
        stamp = time.time_ns()
        self._cup.publish(pose_stamped(stamp, "base", self.cup, [0.0, 0.0, 0.0, 1.0]))
        self._saucer.publish(pose_stamped(stamp, "base", [0.50, 0.20, 0.0], [0.0, 0.0, 0.0, 1.0]))


def picking(bench, root, tmp_path, **parameters) -> tuple[Harness, Scene]:
    harness = Harness(bench, root, tmp_path, task="ur5_pick", twin=True, **parameters)
    return harness, Scene(harness)


def test_picking_in_the_twin_begins_with_an_open_gripper_once_the_new_scene_was_seen(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, seed=7, moving=0.02)
    harness.also.append(SafetyState(robot="other", state=SafetyState.STOPPED, reason="not this one"))
    widths = []
    started = bench.until(
        lambda: EpisodeEvent.START in harness.kinds(), START_S, each=lambda: widths.append(harness.width)
    )
    assert started
    assert scene.resets == [(7, pytest.approx(0.02))]
    assert scene.width_at_reset == pytest.approx(0.085)
    assert set(widths[-5:]) == {0.085}, "the gripper was asked to close before the policy acts"
    assert stamp_ns(harness.events[-1]) - scene.reset_ns > 200_000_000
    # The cup stands on the saucer and the tool is away.
    scene.cup = [0.50, 0.20, 0.008]
    status, run, output = harness.finish()
    assert (status, run["successes"]) == (0, 1)
    assert "cup to saucer" in output and "episode 1: success" in output


def test_a_person_ends_an_episode_of_the_twin_before_physics_judges(bench, root, tmp_path):
    harness, _ = picking(bench, root, tmp_path)
    assert bench.until(lambda: EpisodeEvent.START in harness.kinds(), START_S)
    harness.judge(True)
    status, run, _ = harness.finish()
    assert (status, run["successes"]) == (0, 1)


def test_an_episode_that_a_person_discards_or_takes_back_is_prepared_again(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, episodes=2)
    said = []

    def ask(name):
        client = bench.node.create_client(Trigger, f"/episode/{name}")
        assert bench.until(client.service_is_ready, START_S)
        future = client.call_async(Trigger.Request())
        assert bench.until(future.done, START_S)
        said.append((future.result().success, future.result().message))

    ask("discard")
    harness.begin()
    assert bench.until(lambda: harness.decisions > 3, START_S)
    ask("discard")
    harness.begin(1)
    harness.judge(False)
    assert bench.until(lambda: harness.kinds().count(EpisodeEvent.END) == 2, START_S)
    ask("undo")
    for starts in (2, 3):
        harness.begin(starts)
        harness.judge(True)
    status, run, _ = harness.finish()
    assert (status, run["successes"], [item["outcome"] for item in run["results"]]) == (0, 2, ["success"] * 2)
    none = (False, "no episode runs, and none has ended since the last start")
    assert said == [none, (True, ""), (True, "episode 0 is taken back")]
    started = [event.episode for event in harness.events if event.kind == EpisodeEvent.START]
    assert started == [0, 0, 0, 1]


def test_a_demonstration_of_recovering_begins_with_the_cup_held_off_its_middle(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path, seed=3, labels=["recover"])
    places = {"cup": np.array(scene.cup), "saucer": np.array([0.50, 0.20, 0.0])}
    (place, _), _ = PICKING.demonstrator.preparation("recover", 3, places)
    low = []

    def look():
        if harness.position[2] < 0.1:
            low.append(harness.width)

    assert bench.until(lambda: EpisodeEvent.START in harness.kinds(), START_S, each=look)
    np.testing.assert_allclose(harness.position, place, atol=1e-3)
    assert low[0] == pytest.approx(0.085) and low[-1] == 0.0, "the fingers close around the cup, down there"
    assert scene.width_at_reset == pytest.approx(0.085)


def test_a_scene_that_the_twin_cannot_lay_out_aborts_the_run_with_its_reason(bench, root, tmp_path):
    harness, scene = picking(bench, root, tmp_path)
    scene.answer = ResetEpisode.Response(success=False, message="the tool is 20 mm over the table")
    status, run, output = harness.finish()
    assert (status, run["episodes"]) == (1, 0)
    assert "aborted: the twin was not reset: the tool is 20 mm over the table" in output


def test_a_task_of_an_unknown_kind_is_refused_in_one_sentence(bench, root, tmp_path):
    content = yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text())
    (tmp_path / "pour.yaml").write_text(yaml.safe_dump({**content, "kind": "pouring"}))
    bench.start("episode", {"task": str(tmp_path / "pour.yaml")})
    status, output = bench.finish("episode", START_S)
    assert status == 2 and "Traceback" not in output
    assert "error: kind of task 'pouring' does not exist; valid are picking, placing, table" in output


@pytest.mark.parametrize(
    ("task", "width", "asked", "success"),
    [("franka_place", 0.0, "put the object", True), ("ur5_pick", 0.085, "put cup and saucer", False)],
)
def test_a_person_starts_and_judges_an_episode(bench, root, tmp_path, task, width, asked, success):
    harness = Harness(bench, root, tmp_path, task=task, decoder="bid", samples=16, labels=["bid"])
    harness.begin()
    assert harness.width == pytest.approx(width, abs=1e-6), "the gripper does not begin the episode as the task needs"
    assert 0.40 <= harness.position[0] <= 0.55 and 0.24 <= harness.position[2] <= 0.36, "not at a start of the task"
    harness.judge(success)
    status, run, output = harness.finish()
    assert status == 0
    assert set(run) >= REQUIRED_KEYS
    assert (run["episodes"], run["successes"]) == (1, int(success))
    assert run["decisions"] > 3 and run["decision_ms"]["p50"] == 20.0 and run["missed"] == 0
    assert harness.kinds() == [EpisodeEvent.PREPARE, EpisodeEvent.START, EpisodeEvent.END]
    assert harness.events[-1].success is success
    assert harness.events[-1].outcome_class == EpisodeEvent.TASK
    assert run["results"][0]["outcome_code"] == harness.events[-1].outcome_code == ("success" if success else "failure")
    # Somebody has changed the decoder since the run began.
    assert [event.label for event in harness.events] == ["bid", "bid", "ema"]
    assert "episode 1: " in output and asked in output


def test_a_robot_goes_to_its_first_start_once_a_person_lets_it(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path)
    awaits: list[str] = []
    hear = lambda item: awaits.extend(v.value for s in item.status for v in s.values if v.key == "awaits")  # noqa: E731
    bench.node.create_subscription(DiagnosticArray, "/diagnostics", hear, EVERY_STATE)
    assert bench.until(lambda: "leave" in awaits, START_S)
    bench.until(lambda: False, 1.0)
    assert not harness.events and not any(grant.sources for _, grant in harness.grants), "nobody lets it move"
    assert (harness.position, harness.width) == ([0.5, 0.0, 0.3], 0.02)
    assert harness.leave() == LEFT
    assert bench.until(lambda: harness.kinds() == [EpisodeEvent.PREPARE], START_S)
    assert bench.until(lambda: harness.width > 0.02 and harness.grants[-1][1].sources == ["episode"], START_S)
    harness.begin()
    harness.judge(True)
    _, _, output = harness.finish()
    assert "ready: the arm stays where it is; then the gripper opens, and the arm goes to its start" in output


@pytest.mark.parametrize("acting", ["policy", "teleop"])
def test_whoever_moves_the_arm_is_granted_it_and_nobody_afterwards(bench, root, tmp_path, acting):
    harness = Harness(bench, root, tmp_path, acting=acting)
    harness.leave()
    assert bench.until(lambda: len(harness.grants) > 5, START_S)
    assert {tuple(item.sources) for _, item in harness.grants} == {("episode",)}
    harness.begin()
    assert bench.until(lambda: harness.grants[-1][1].sources == [acting], START_S)
    begun = time.monotonic()
    assert bench.until(lambda: harness.grants[-1][0] > begun + 1.0, START_S)
    harness.judge(True)
    harness.finish()
    order = [tuple(item.sources) for _, item in harness.grants]
    assert list(dict.fromkeys(order)) == [("episode",), (acting,), ()] and order[-1] == ()
    assert {item.granter for _, item in harness.grants} == {"episode"}
    assert {stamp_to_ns(item.duration) for _, item in harness.grants[:-1]} == {500_000_000}
    # Renewed often enough for one to be lost, and no oftener than a safety node can take.
    gaps = np.diff([at for at, _ in harness.grants])
    assert np.median(gaps) == pytest.approx(0.1, abs=0.06)
    assert np.quantile(gaps, 0.9) < 0.4, "more than a few that a busy computer held up"


def test_a_frozen_sequence_grants_nothing(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path)
    harness.begin()
    assert bench.until(lambda: harness.grants[-1][1].sources == ["policy"], START_S)
    bench.processes["episode"].send_signal(signal.SIGSTOP)
    frozen = time.monotonic()
    assert bench.until(lambda: time.monotonic() > frozen + 1.0)
    assert harness.grants[-1][0] < frozen + 0.2
    bench.processes["episode"].send_signal(signal.SIGCONT)
    harness.judge(True)
    assert harness.finish()[0] == 0


def test_an_episode_without_a_verdict_times_out_and_the_next_one_follows(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, episodes=2, seed=5, labels=["clean", "diverse"])
    harness.begin(0)
    harness.begin(1)
    harness.judge(True)
    status, run, _ = harness.finish()
    assert status == 0
    assert (run["episodes"], run["successes"]) == (2, 1)
    ends = [event for event in harness.events if event.kind == EpisodeEvent.END]
    assert [(end.episode, end.seed, end.label, end.outcome) for end in ends] == [
        (0, 5, "clean", "timeout"),
        (1, 6, "diverse", "success"),
    ]
    assert ends[0].duration == pytest.approx(3.0, abs=1.0)


def test_without_an_arm_the_run_is_aborted_with_one_sentence(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, ready_timeout_s=1.0)
    harness.mode = None
    status, run, output = harness.finish()
    assert status == 1
    assert run["episodes"] == 0
    assert "aborted: a sign of life of the arm did not happen within 1 s" in output


def test_no_episode_begins_before_every_node_of_the_system_was_heard(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, ready_timeout_s=2.0, nodes=["arm", "recorder"])
    beats = bench.node.create_publisher(Heartbeat, "/heartbeat", STATE)
    bench.node.create_timer(0.05, lambda: beats.publish(Heartbeat(node="arm")))
    status, _, output = harness.finish()
    assert status == 1 and not harness.events
    assert "a sign of life of every node did not happen within 2 s: waiting for recorder; a larger ready" in output


def test_a_run_that_is_ended_in_the_middle_is_written_all_the_same(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, episodes=3)
    harness.begin()
    bench.processes["episode"].send_signal(signal.SIGTERM)
    _, run, _ = harness.finish()
    assert (run["episodes"], run["successes"]) == (1, 0)
    assert (run["results"][0]["outcome_class"], run["results"][0]["outcome_code"]) == ("infrastructure", "shutdown")


class Person:
    """A person who records: starts, marks and takes back."""

    def __init__(self, harness):
        self.harness, node = harness, harness.bench.node
        self._services = {name: node.create_client(Trigger, f"/episode/{name}") for name in ("discard", "undo")}

    def call(self, name):
        client = self._services[name]
        assert self.harness.bench.until(client.service_is_ready, START_S)
        future = client.call_async(Trigger.Request())
        assert self.harness.bench.until(future.done, START_S)
        return future.result().success, future.result().message

    def mark(self, success):
        future = self.harness._outcome.call_async(SetBool.Request(data=success))
        assert self.harness.bench.until(future.done, START_S)
        return future.result().success

    def until(self, kind, count):
        assert self.harness.bench.until(lambda: self.harness.kinds().count(kind) == count, START_S), (
            self.harness.kinds()
        )


def test_a_person_who_records_marks_again_takes_back_and_discards(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, task="ur5_pick", human=True, episodes=2, timeout_s=60.0)
    person = Person(harness)
    end, undo = EpisodeEvent.END, 3
    harness.begin(0)
    assert person.call("undo") == (False, "an episode runs; valid is to discard it")
    assert person.mark(True)
    person.until(end, 1)
    assert person.mark(False), "a mark after the end replaces the outcome"
    person.until(end, 2)
    corrected = [event for event in harness.events if event.kind == end][-1]
    assert (corrected.outcome, corrected.success) == ("failure", False)
    person.until(EpisodeEvent.PREPARE, 2)
    assert person.call("undo") == (True, "episode 0 is taken back")
    person.until(undo, 1)
    assert person.call("undo") == (False, "no episode has ended")
    person.until(EpisodeEvent.PREPARE, 3)
    assert harness.events[-1].episode == 0, "it comes again"
    harness.begin(1)
    assert person.call("discard")[0]
    person.until(end, 3)
    for number in (2, 3):
        harness.begin(number)
        assert person.mark(True)
        person.until(end, number + 2)
    status, run, output = harness.finish()
    assert status == 0 and (run["episodes"], run["successes"]) == (2, 2)
    started = [(event.episode, event.seed) for event in harness.events if event.kind == EpisodeEvent.START]
    assert started == [(0, 0), (0, 0), (0, 0), (1, 1)]
    assert "failure after all" in output and "taken back" in output


def test_the_time_of_an_episode_runs_once_the_device_of_the_person_is_there(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, task="ur5_pick", acting="teleop", awaited="page", prepares=False)
    switch = bench.node.create_publisher(Bool, "/teleop/switch", COMMAND)
    said: list[str] = []
    hear = lambda item: said.extend(v.value for s in item.status for v in s.values if v.key == "awaits")  # noqa: E731
    bench.node.create_subscription(DiagnosticArray, "/diagnostics", hear, EVERY_STATE)
    assert bench.until(lambda: "the device 'page'" in said, START_S)
    assert harness.kinds() == [EpisodeEvent.PREPARE]
    assert bench.until(lambda: len(said) > 4, START_S), "it waits on"
    assert harness.kinds() == [EpisodeEvent.PREPARE]
    began = lambda: EpisodeEvent.START in harness.kinds()  # noqa: E731
    assert bench.until(began, START_S, each=lambda: switch.publish(Bool(data=False)))
    harness.judge(True)
    status, run, output = harness.finish()
    assert status == 0 and run["successes"] == 1
    assert "the episode begins once the device 'page' is there" in output
    assert "tool 0.500 0.000 0.300 m  0.00 m/s  gripper 20 mm" in output


def test_the_silence_of_arm_and_safety_node_is_said_by_the_episode_and_waits_for_a_person(bench, root, tmp_path):
    """Each of them reports the silence of the other one. If both are silent, nobody else does."""
    harness = Harness(bench, root, tmp_path, prepares=False, episodes=2)
    assert bench.until(lambda: harness.decisions > 3, START_S)
    harness.mode = None
    assert bench.until(lambda: EpisodeEvent.END in harness.kinds(), START_S)
    assert not bench.until(lambda: harness.kinds()[-1] != EpisodeEvent.END, 1.5), "it goes on though nobody is heard"
    harness.mode = ArmStatus.HOLDING
    harness.begin(1)  # after a stop a robot moves once a person lets it
    _, run, output = harness.finish()
    assert "stopped: neither arm node nor safety node was heard for 0." in output
    (stop,) = run["stops"]
    assert (stop["outcome_class"], stop["outcome_code"], stop["reset_by"]) == ("infrastructure", "computer", "person")
    assert stop["reset_s"] > 1.0


def test_an_episode_begins_once_the_policy_has_taken_its_decoder(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, prepares=False)
    harness.mode = None  # it waits for the arm
    diagnostics = bench.node.create_publisher(DiagnosticArray, "/diagnostics", STATE)
    said: list[str] = []
    hear = lambda item: said.extend(v.value for s in item.status for v in s.values if v.key == "awaits")  # noqa: E731
    bench.node.create_subscription(DiagnosticArray, "/diagnostics", hear, EVERY_STATE)

    def say(*values: KeyValue) -> None:
        status = DiagnosticStatus(name="bid_ros: policy", hardware_id="franka", values=values)
        diagnostics.publish(DiagnosticArray(status=[status]))

    changing = lambda: say(KeyValue(key="next_decoder", value="ema"))  # noqa: E731
    assert bench.until(lambda: len(said) > 2, START_S, each=changing), "the node did not come up"
    harness.mode = ArmStatus.HOLDING
    assert bench.until(lambda: said[-1] == "the decoder ema", START_S, each=changing), said
    assert harness.kinds() == [EpisodeEvent.PREPARE]
    assert bench.until(lambda: EpisodeEvent.START in harness.kinds(), START_S, each=say)
    harness.judge(True)
    _, run, output = harness.finish()
    assert run["successes"] == 1 and "the episode begins once the decoder ema is there" in output


def test_a_person_takes_over_and_only_one_is_granted_at_a_time(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path, task="ur5_pick", human=True, takeover=True, timeout_s=60.0, return_s=0.1)
    person, held = Person(harness), [False]
    switch = bench.node.create_publisher(Bool, "/teleop/switch", COMMAND)
    bench.node.create_timer(0.02, lambda: held[0] is not None and switch.publish(Bool(data=held[0])))

    def granted(source):
        return bench.until(lambda: harness.grants[-1][1].sources == ([source] if source else []), START_S)

    harness.begin()
    for wanted, now in (("policy", True), ("teleop", False), ("policy", None), ("", False)):
        assert granted(wanted), (wanted, harness.grants[-1])
        held[0] = now
    quiet = time.monotonic() + 1.0
    assert bench.until(lambda: time.monotonic() > quiet, START_S) and granted(""), "not before the switch was held"
    held[0] = True
    assert granted("teleop")
    assert person.mark(True)
    status, run, output = harness.finish()
    assert status == 0 and run["successes"] == 1
    seen = [tuple(grant.sources) for _, grant in harness.grants]
    order = [now for before, now in zip([None, *seen], seen, strict=False) if now != before]
    at = order.index(("policy",))
    assert order[at : at + 7] == [("policy",), (), ("teleop",), ("policy",), (), ("teleop",), ()]
    assert "the device is gone" in output


def test_in_shadow_mode_nobody_but_the_shadow_is_granted_and_nothing_is_prepared(bench, root, tmp_path):
    given = {"shadow": True, "prepares": False, "timeout_s": 1.0}
    harness = Harness(bench, root, tmp_path, **given)
    reports, moves = bench.node.create_publisher(String, "/safety/shadow", EVENT), []
    bench.node.create_subscription(ChunkMessage, "/episode/chunk", moves.append, EVERY_COMMAND)
    ended = lambda pair: bool(pair[0][1].sources) and not pair[1][1].sources  # noqa: E731
    episodes = lambda: sum(map(ended, pairwise(harness.grants)))  # noqa: E731
    report = {**Shadow(load_task(root / "config" / "franka_place" / "task.yaml")).report(), "chunks": 7}
    tell = lambda: reports.publish(String(data=json.dumps({"episodes": episodes(), **report})))  # noqa: E731
    assert bench.until(lambda: bench.processes["episode"].poll() is not None, START_S, each=tell)
    status, run, output = harness.finish()
    assert status == 0 and harness.kinds() == [EpisodeEvent.PREPARE, EpisodeEvent.START, EpisodeEvent.END]
    assert {tuple(item.sources) for _, item in harness.grants} == {("shadow",), ()} and not moves
    assert run["shadow"] == {"episodes": 1, **report} and run["results"][0]["outcome"] == "not judged"
    assert "not judged: 1 episodes in shadow mode" in output and "0 of 7 would have passed" in output

"""Rehearsals of a teleoperator that knows where the cup is: the rules, without a trained policy."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import main
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.observation import task_history
from bid_ros.core.task import load_task
from bid_ros.decoding import Choice
from bid_ros.episodes.log import scene_of
from bid_ros.episodes.rehearsal import Rehearsal, RehearsalConfig, decision_due
from bid_ros.policy.decide import DecisionRecord
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.system.folder import find_system
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.placing.cup_path import episode_scene
from bid_ros.tasks.registry import build_stage, find_demonstrator

SEED = 8_000
PICK_S = 9.0  # the clean attempts of this file succeed within 7 s
THRESHOLDS = GripperThresholds(0.03, 0.07)


class Operator:
    """Stands in for policy and decoder: a clean demonstration towards the cup, or beside it."""

    def __init__(self, task, beside=0.0, steps=15):
        self.task, self._beside, self._steps = task, np.array([beside, 0.0, 0.0]), steps
        self.history = task_history(task)

    def reset(self, seed):
        plan, places = find_demonstrator(self.task).plan, PLACES[self.task.name](seed)
        bodies = {name: np.append(place, 0.0) + self._beside for name, place in places.items()}
        self._plan = plan("clean", 0, scene_of(self.task, seed), bodies, NANOSECONDS)

    def forwarded(self, chunk):
        assert chunk.scale == 1.0, "a clean demonstration keeps the limits"

    def decide(self, observation):
        chunk = self._plan.chunk_at(observation.stamp_ns, self._steps, self.task.dt_ns)
        choice = Choice(chunk.actions, 0, None, None, 0)
        return DecisionRecord(observation.stamp_ns, chunk, np.zeros(0), None, choice, 0, 0, 0)


PLACES = {
    "franka_place": lambda seed: {"cup": episode_scene(seed, 0.0).cup_start},
    "ur5_pick": lambda seed: {"cup": picking_layout(seed).cup_start, "saucer": picking_layout(seed).saucer},
}


@pytest.fixture
def picking(root):
    return load_task(root / "config" / "ur5_pick" / "task.yaml")


@pytest.fixture
def quick(picking):
    """Picking with one small camera, at which the operator does not look, and time for little more than an attempt."""
    first = replace(picking.cameras[0], shape=(16, 16, 3))
    others = (item for item in picking.observation if item.kind != "image")
    return replace(picking, observation=(first, *others), episode_timeout=PICK_S)


@pytest.fixture
def rehearse():
    made = []

    def run(operator, speed=0.0):
        made.append(Rehearsal(operator.task, operator, build_stage(operator.task, THRESHOLDS)))
        return made[-1].run(0, SEED, speed)

    yield run
    for rehearsal in made:
        rehearsal.close()


def test_who_knows_the_cup_places_into_it(task, rehearse):
    result = rehearse(Operator(task))
    assert result.success and result.outcome == "success" and 1.0 < result.duration_s < 6.0


def test_who_goes_beside_the_cup_touches_it(task, rehearse):
    assert rehearse(Operator(task, beside=0.03)).outcome == "touched"


def test_who_is_blind_misses_a_moving_cup(task, rehearse):
    assert rehearse(Operator(task), speed=0.03).outcome in ("touched", "dropped")


def test_who_knows_cup_and_saucer_picks_and_puts(picking, rehearse):
    result = rehearse(Operator(picking))
    assert result.outcome == "success" and 4.0 < result.duration_s < 10.0


def test_who_goes_beside_the_cup_does_not_pick_it(quick, rehearse):
    assert rehearse(Operator(quick, beside=0.06)).outcome in ("timeout", "dropped")


def test_a_cup_that_is_pulled_away_is_not_picked_by_who_is_blind(quick, rehearse):
    assert not rehearse(Operator(quick), speed=0.03).success


def test_poses_become_joints_where_the_task_commands_these(root):
    system = find_system(root / "config" / "joints" / "franka_place")
    poses = load_task(root / "config" / "franka_place" / "task.yaml")
    arm, operator = system.arm(), Operator(poses)
    chunks = TaskChunks(system.task, arm)
    slow = replace(system.task, limits=replace(system.task.limits, max_joint_speed=0.1))
    outcomes = []
    for task in (system.task, slow):
        made = Rehearsal(task, operator, system.stage(), arm=arm, chunks=chunks, policy_task=poses)
        outcomes.append(made.run(0, SEED, 0.0).outcome)
        made.close()
    assert outcomes[0] == "success"
    assert outcomes[1].startswith("stopped: joint") and "the limit is 0.100 rad/s" in outcomes[1]


@pytest.mark.parametrize(
    ("decisions", "wanted_ms"),
    [(1, [0, 100, 200]), (2, [0, 50, 100, 150, 200]), (3, [0, 40, 70, 100, 140, 170, 200]), (10, range(0, 201, 10))],
)
def test_decisions_are_made_at_the_first_step_at_or_after_their_time(decisions, wanted_ms):
    assert [10 * step for step in range(21) if decision_due(step, 100_000_000, decisions)] == [*wanted_ms]


def test_more_decisions_a_step_see_the_history_of_the_task(task):
    """Each observation holds samples of its own instants, one step of the task apart, whatever lies between."""
    seen = []

    class Watcher(Operator):
        def decide(self, observation):
            seen.append(observation)
            return super().decide(observation)

    rehearsal = Rehearsal(task, Watcher(task), build_stage(task, THRESHOLDS), decisions=3)
    try:
        assert rehearsal.run(0, SEED, 0.0).success
    finally:
        rehearsal.close()
    stamps = np.array([item.stamp_ns for item in seen])
    assert set(np.diff(stamps)) == {30_000_000, 40_000_000}
    for item in seen[3:]:
        assert {name: tuple(np.subtract(item.stamp_ns, at)) for name, at in item.samples_ns.items()} == dict.fromkeys(
            item.samples_ns, (task.dt_ns, 0)
        )


def test_one_rehearsal_does_not_change_the_next(quick):
    rehearsal = Rehearsal(quick, Operator(quick), build_stage(quick, THRESHOLDS))
    try:
        first = rehearsal.run(0, SEED, 0.0)
        assert rehearsal.run(0, SEED + 1, 0.0).duration_s != first.duration_s
        assert rehearsal.run(0, SEED, 0.0) == first
    finally:
        rehearsal.close()


def test_who_stops_sending_runs_out_of_time(task, rehearse):
    class Silent(Operator):
        def decide(self, observation):
            return None

    result = rehearse(Silent(task))
    assert result.outcome == "timeout" and result.duration_s == pytest.approx(task.episode_timeout)


def test_the_envelope_stops_a_chunk_outside_the_workspace(task, rehearse):
    assert rehearse(Operator(task, beside=0.4)).outcome.startswith("stopped: ")


def test_an_impossible_delay_is_refused():
    with pytest.raises(BidError, match=r"latency_s is -1; valid is a number from 0 to 0\.5"):
        RehearsalConfig(latency_s=-1)


def test_the_command_writes_a_run_that_tables_understand(root, task, tmp_path, capsys):
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    arguments = ["--bundle", str(bundle), "--episodes", "1", "--samples", "4", "--out", str(tmp_path), "--json"]
    assert main(["rehearse", "franka_place", *arguments]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["hardware"] == "rehearsal" and run["results"][0]["outcome"] in ("timeout", "dropped")
    assert main(["episodes", "table", str(tmp_path / "run.json")]) == 0
    assert "bid+lead, N = 4" in capsys.readouterr().out
    assert main(["episodes", "table", str(tmp_path / "run.json"), "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)
    assert (cell["decoder"], cell["episodes"]) == ("bid+lead, N = 4, rehearsal", 1)
    assert cell["rate"] == cell["successes"]


def test_what_was_rehearsed_until_a_person_ended_it_is_kept(task, tmp_path, monkeypatch):
    rehearsed = Rehearsal.run

    def until_the_second(self, episode, *rest):
        if episode:
            raise KeyboardInterrupt
        return rehearsed(self, episode, *rest)

    monkeypatch.setattr(Rehearsal, "run", until_the_second)
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    arguments = ["--bundle", str(bundle), "--episodes", "2", "--samples", "4", "--out", str(tmp_path)]
    assert main(["rehearse", "franka_place", *arguments]) == 130
    assert len(json.loads((tmp_path / "run.json").read_text())["results"]) == 1


def test_the_command_refuses_a_file_in_place_of_a_folder(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["rehearse", "franka_place", "--episodes", "1", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.endswith("/file is a file; valid is a folder, there or to be made\n")


def test_the_command_refuses_no_episode(capsys):
    assert main(["rehearse", "franka_place", "--episodes", "0"]) == 2
    assert "episodes is 0; valid is 1 to 100000" in capsys.readouterr().err

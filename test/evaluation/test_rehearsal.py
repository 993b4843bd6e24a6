"""Rehearsals of a teleoperator that knows where the cup is: the rules, without a trained policy."""

import json

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.bringup import SYSTEMS
from bid_ros.chunk import NANOSECONDS
from bid_ros.cli import main
from bid_ros.commands.rehearse import PLACING
from bid_ros.decoding import Choice
from bid_ros.errors import BidError
from bid_ros.evaluation.episode import scene_of
from bid_ros.evaluation.rehearsal import Rehearsal, RehearsalConfig
from bid_ros.policy.decide import DecisionRecord
from bid_ros.sim.cup_path import episode_scene
from bid_ros.task import load_task
from bid_ros.teleop import ScriptedTeleoperator

SEED = 300_000


class Operator:
    """Stands in for policy and decoder: a clean demonstration towards the cup, or beside it."""

    def __init__(self, task, beside=0.0, steps=15, speed=0.0):
        self._task, self._beside, self._steps, self._speed = task, np.array([beside, 0.0]), steps, speed

    def reset(self, seed):
        self._plan = ScriptedTeleoperator("clean", 0)
        cup = episode_scene(seed, self._speed).cup_start + self._beside
        self._plan.plan(scene_of(self._task, seed), cup, NANOSECONDS)

    def decide(self, observation):
        chunk = self._plan.chunk_at(observation.stamp_ns, self._steps, self._task.dt_ns)
        choice = Choice(chunk.actions, 0, None, None, 0)
        return DecisionRecord(observation.stamp_ns, chunk, np.zeros(0), None, choice, 0, 0, 0)


@pytest.fixture
def task(root):
    return load_task(root / "config" / "franka_place.yaml")


@pytest.fixture
def rehearse(task):
    made = []

    def run(operator, speed=0.0):
        made.append(Rehearsal(task, operator))
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


def test_who_stops_sending_runs_out_of_time(task, rehearse):
    class Silent(Operator):
        def decide(self, observation):
            return None

    result = rehearse(Silent(task))
    assert result.outcome == "timeout" and result.duration_s == pytest.approx(task.episode_timeout)


def test_the_envelope_stops_a_chunk_outside_the_workspace(task, rehearse):
    assert rehearse(Operator(task, beside=0.4)).outcome.startswith("stopped: ")


def test_an_impossible_delay_is_refused():
    with pytest.raises(BidError, match="latency_s is -1 s; valid is 0 to"):
        RehearsalConfig(latency_s=-1)


def test_the_command_writes_a_run_that_tables_understand(root, task, tmp_path, capsys):
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    arguments = ["--bundle", str(bundle), "--episodes", "1", "--samples", "4", "--out", str(tmp_path), "--json"]
    assert main(["rehearse", "franka_place", *arguments]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["hardware"] == "rehearsal" and run["results"][0]["outcome"] in ("timeout", "dropped")
    assert main(["table", str(tmp_path / "run.json")]) == 0
    assert "bid, N = 4" in capsys.readouterr().out


def test_the_command_refuses_no_episode(capsys):
    assert main(["rehearse", "franka_place", "--episodes", "0"]) == 2
    assert "episodes is 0; valid is 1 or more" in capsys.readouterr().err


def test_what_can_be_rehearsed_can_be_brought_up():
    assert set(PLACING) <= set(SYSTEMS)

"""Rehearsals of two arms in lockstep, moved by scripts that know where the cups are."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.arms import Arms, scene_seed
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.observation import task_history
from bid_ros.core.task import load_task
from bid_ros.decoding import Choice
from bid_ros.episodes.arms import ArmsRehearsal
from bid_ros.episodes.log import scene_of
from bid_ros.episodes.rehearsal import RehearsalConfig, RehearsedArm
from bid_ros.policy.decide import DecisionRecord
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.tasks.placing.cup_path import episode_scene
from bid_ros.tasks.registry import build_stage, find_demonstrator

SEED = 8_000


class Operators:
    """Stand in for policy and decoder: a clean demonstration for each arm, or one beside the cup."""

    def __init__(self, arms, beside=0.0, leaves=0.0):
        self._arms, self._beside, self._leaves = arms, {"left": 0.0, "right": beside}, leaves
        self.history, self.stamps = task_history(arms.task), []

    def reset(self, seed):
        self._plans = {}
        for number, (arm, task) in enumerate(self._arms.tasks.items()):
            own = scene_seed(seed, number)
            x, y = episode_scene(own, 0.0).cup_start
            bodies = {"cup": np.array([x + self._beside[arm], y, 0.0])}
            self._plans[arm] = find_demonstrator(task).plan("clean", 0, scene_of(task, own), bodies, NANOSECONDS)

    def decide(self, observation):
        self.stamps.append(observation.stamp_ns)
        assert set(observation.values) == {item.name for item in self._arms.task.observation}
        chunks = [plan.chunk_at(observation.stamp_ns, 15, self._arms.task.dt_ns) for plan in self._plans.values()]
        actions = np.concatenate([chunk.actions for chunk in chunks], axis=1)
        actions[:, 10] += self._leaves
        chunk, none = ActionChunk(observation.stamp_ns, chunks[0].dt_ns, actions), np.zeros((0, 16, 20))
        return DecisionRecord(observation.stamp_ns, chunk, none, None, Choice(actions, 0, None, None, 0), 0, 0, 0)


@pytest.fixture
def rehearse(root):
    task = load_task(root / "config" / "franka_place" / "task.yaml")
    first = replace(task.cameras[0], shape=(16, 16, 3))
    seen = (first, *(item for item in task.observation if item.kind != "image"))
    arms = Arms("two", dict.fromkeys(("left", "right"), replace(task, observation=seen, episode_timeout=6.0)))
    made = []

    def run(**how):
        stages = {arm: build_stage(one, GripperThresholds(0.03, 0.07)) for arm, one in arms.tasks.items()}
        parts = {
            arm: RehearsedArm(one, stages[arm], RehearsalConfig(), None, None, one) for arm, one in arms.tasks.items()
        }
        operators = Operators(arms, **how)
        made.append(ArmsRehearsal(arms, operators, parts))
        return made[-1].run(0, SEED, 0.0, "clean"), operators

    yield run
    for rehearsal in made:
        rehearsal.close()


def test_two_cups_are_filled_in_lockstep(rehearse):
    result, operators = rehearse()
    assert result.success and result.outcome == "success" and result.label == "clean"
    assert set(np.diff(operators.stamps)) == {100_000_000}


def test_one_arm_beside_its_cup_fails_the_episode(rehearse):
    result, _ = rehearse(beside=0.12)
    assert not result.success and result.outcome.startswith("right: "), result


def test_what_one_arms_safety_refuses_stops_both(rehearse):
    result, _ = rehearse(leaves=0.4)
    assert result.outcome.startswith("stopped: right: ") and "workspace" in result.outcome, result

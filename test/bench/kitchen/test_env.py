"""Franka Kitchen: it runs in an environment of its own, ``make benchmarks``."""

from pathlib import Path

import numpy as np
import pytest

from bid_ros.bench.kitchen.arm import KitchenArm, hand_turn
from bid_ros.bench.kitchen.catalogue import GOALS
from bid_ros.bench.kitchen.demonstrating import SCRIPTS, demonstrate, do_goals
from bid_ros.bench.kitchen.env import KitchenEnv, observation_values, score
from bid_ros.bench.kitchen.scripted_operator import KitchenOperator
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.sim import opengl_variables

pytest.importorskip("gymnasium_robotics", reason="gymnasium-robotics is not installed")
TASK = load_task(Path(__file__).resolve().parents[3] / "config" / "kitchen.yaml")


@pytest.fixture(scope="module")
def env():
    return KitchenEnv()


def moved(env, seed, steps=10):
    """Return the state after a few steps towards other joints."""
    state = env.reset(seed)
    goal = state.agent + np.array([0.2, 0.1, -0.2, 0.1, 0.0, 0.2, 0.1, -0.04, -0.04])
    for _ in range(steps):
        state = env.step(goal)
    return state


def test_the_same_seed_and_actions_give_the_same_states(env):
    one, other, third = moved(env, 7), moved(KitchenEnv(), 7), moved(env, 8)
    np.testing.assert_array_equal(one.agent, other.agent)
    np.testing.assert_array_equal(one.block, other.block)
    assert 0.005 < np.abs(env.reset(7).agent - env.reset(8).agent).max() < 0.07
    assert np.abs(one.agent - third.agent).max() > 0.001
    assert {name: len(values) for name, values in observation_values(one).items()} == {
        item.name: item.size for item in TASK.observation
    }


def test_joints_go_where_an_action_says(env):
    state = env.reset(3)
    goal = state.agent + np.array([0.1, 0.0, 0.0, 0.0, 0.1, 0.0, -0.1, -0.02, -0.02])
    for _ in range(30):
        state = env.step(goal)
    np.testing.assert_allclose(state.agent[[0, 4, 6]], goal[[0, 4, 6]], atol=0.03)  # its weight bends the others
    np.testing.assert_allclose(state.agent[7:], goal[7:], atol=2e-3)


def test_a_state_is_set_as_it_was(env):
    state = moved(env, 3)
    again = KitchenEnv().set_state(state.agent, state.block)
    np.testing.assert_array_equal(again.agent, state.agent)
    np.testing.assert_array_equal(again.block, state.block)


def test_each_goal_counts_a_quarter_and_stays_counted(env):
    state = env.reset(3)
    block = state.block.copy()
    assert state.coverage == 0 and state.done == ()
    for count, (name, goal) in enumerate(GOALS.items(), 1):
        block[list(goal.at)] = goal.values
        reached = env.set_state(state.agent, block)
        assert name in reached.done and score(reached.coverage) == min(count / 4, 1)
    held = env.set_state(state.agent, reached.block)
    for _ in range(3):
        held = env.step(state.agent)
    assert set(held.done) == set(GOALS)


def test_the_arm_model_brings_the_hand_where_it_is_told(env):
    state = env.reset(2)
    operator = KitchenOperator(state, np.random.default_rng(0), KitchenArm(env.physics))
    goal = np.array([-0.35, 0.3, 2.1])
    for action in operator.move(goal, np.array([0.2, 0.1, 0.0])):
        operator.state = state = env.step(action)
    place, turn = operator.arm.pose(state.agent[:7])
    np.testing.assert_allclose(place, goal, atol=0.02)
    np.testing.assert_allclose(turn, hand_turn(0.2, 0.1, 0.0), atol=0.06)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_goal_is_done_in_the_simulator(env, name):
    state = env.reset(1)
    operator = KitchenOperator(state, np.random.default_rng((1, 7)), KitchenArm(env.physics))
    for steps, action in enumerate(do_goals(operator, (name,))):
        operator.state = state = env.step(action)
        assert steps < 300
    assert state.done == (name,)


def test_scripted_operators_do_four_goals(env):
    found = next(item for seed in range(3) if (item := demonstrate(env, TASK, seed)) is not None)
    found.validate(TASK)
    again = demonstrate(KitchenEnv(), TASK, int(found.seeds[0]))
    assert again is not None and again.sha256 == found.sha256


def test_a_picture_is_drawn_as_the_command_starts(monkeypatch):
    """bid keeps MuJoCo from opening OpenGL by itself, whatever the user asked for."""
    for name, value in opengl_variables().items():
        monkeypatch.setenv(name, value)
    env = KitchenEnv()
    state = env.reset(3)
    before, block = env.picture(state, 128), state.block.copy()
    block[10], block[13] = 0.4, -0.8
    after = env.picture(env.set_state(state.agent, block), 128)
    assert before.shape == (128, 128, 3) and before.std() > 20
    assert (np.abs(before.astype(int) - after).max(axis=-1) > 30).mean() > 0.01


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda env: env.reset(-1), "seed is -1; valid is 0 to 4294967295"),
        (lambda env: env.step(np.zeros(8)), "valid are 9 finite numbers"),
        (lambda env: env.step(np.full(9, np.nan)), "valid are 9 finite numbers"),
        (lambda env: KitchenEnv(2.0), "drift is 2; valid is 0: a kitchen stays where it is"),
    ],
)
def test_what_it_refuses(env, act, said):
    with pytest.raises(BidError, match=said):
        act(env)

"""Robomimic's tasks: they run in an environment of their own, ``make benchmarks``."""

from pathlib import Path

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.bench.robomimic.data import object_as_simulated
from bid_ros.bench.robomimic.demonstrating import demonstrate
from bid_ros.bench.robomimic.env import RobomimicEnv, observation_values, score
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import matrix_from_6d, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.sim import opengl_variables

pytest.importorskip("robosuite", reason="robosuite is not installed")
FIRST = {"tool_hang": 2}  # seed; whoever is slow does not end in time
CONFIG = Path(__file__).resolve().parents[3] / "config"


@pytest.fixture(scope="module")
def env():
    return RobomimicEnv("lift")


def moved(env, seed, steps=10):
    """Return the state after a few steps towards a place beside the start."""
    state = env.reset(seed)
    goal = state.agent + np.tile(np.concatenate([[0.05, -0.03, -0.04], np.zeros(6), [2.0]]), env.task.arms)
    for _ in range(steps):
        state = env.step(goal)
    return state


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_and_actions_give_the_same_states(name):
    one, other, third = (moved(RobomimicEnv(name), seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.block, other.block)
    assert {key: values.tolist() for key, values in one.shown.items()} == {
        key: values.tolist() for key, values in other.shown.items()
    }
    assert np.abs(one.block - third.block).max() > 0.01
    sizes = {key: len(values) for key, values in observation_values(one).items()}
    assert sizes == {item.name: item.size for item in load_task(CONFIG / f"{name}.yaml").observation}
    assert sizes["object"] == len(TASKS[name].columns_14)
    assert one.agent.size == TASKS[name].action_size == load_task(CONFIG / f"{name}.yaml").action_dim


@pytest.mark.parametrize("name", TASKS)
def test_what_is_read_of_demonstrations_is_what_the_simulator_shows(name):
    """The ways from tool to object that the reader works out from their places, from the first row on."""
    env = RobomimicEnv(name)
    state = env.reset(4)
    goal = state.agent + np.tile(np.concatenate([[0.05, -0.03, -0.04], np.zeros(6), [2.0]]), env.task.arms)
    states = [state, *(env.step(goal) for _ in range(30))]
    shown = {key: np.array([state.shown[key] for state in states]) for key in state.shown}
    np.testing.assert_allclose(object_as_simulated(shown, env.task), shown["object"], atol=1e-5)


def test_each_of_two_arms_goes_where_its_part_of_an_action_says():
    env = RobomimicEnv("transport")
    state = env.reset(3)
    wanted = state.agent.copy()
    wanted[[0, 2, 10, 12]] += [0.05, -0.04, -0.05, -0.03]
    wanted[9], wanted[19] = 1.0, -1.0
    for _ in range(40):
        state = env.step(wanted)
    np.testing.assert_allclose(state.agent, wanted, atol=0.03)
    first, second = (state.shown[f"robot{arm}_gripper_qpos"] for arm in range(2))
    assert first[0] - first[1] < 0.01 and second[0] - second[1] > 0.07


def test_a_start_does_not_depend_on_what_was_before(env):
    fresh = RobomimicEnv("lift").reset(5)
    moved(env, 3)
    np.testing.assert_array_equal(env.reset(5).block, fresh.block)


def test_the_tool_reaches_the_pose_that_an_action_says(env):
    state = env.reset(3)
    yaw = np.deg2rad(30.0)
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    wanted = np.append(matrix_to_6d(turn @ matrix_from_6d(state.agent[3:9])), -1.0)
    wanted = np.concatenate([state.agent[:3] + np.array([0.05, -0.03, -0.02]), wanted])
    for _ in range(30):
        state = env.step(wanted)
    np.testing.assert_allclose(state.agent[:3], wanted[:3], atol=3e-3)
    np.testing.assert_allclose(state.agent[3:9], wanted[3:9], atol=0.03)


def test_the_hand_that_is_observed_is_a_quarter_turn_from_the_grip_site(env):
    """The reader of demonstrations rests on it."""
    from bid_ros.bench.robomimic.data import SITE

    state = moved(env, 4)
    hand = matrix_from_quaternion(state.shown["robot0_eef_quat"])
    np.testing.assert_allclose(hand @ SITE, matrix_from_6d(state.agent[3:9]), atol=2e-3)
    way = state.shown["object"][:3] - state.shown["robot0_eef_pos"]
    np.testing.assert_allclose(state.shown["object"][7:10], way, atol=5e-3)


def test_a_state_is_set_as_it_was(env):
    state = moved(env, 3)
    again = RobomimicEnv("lift").set_state(state.agent, state.block)
    np.testing.assert_allclose(again.agent, state.agent, atol=5e-3)  # shown before the last 2 ms of its physics


def test_a_lifted_cube_is_a_success(env):
    state = env.reset(3)
    lifted = state.block.copy()
    lifted[-5] += 0.06  # the last seven: x, y, z and the quaternion of the cube
    assert score(state.coverage) == 0 and score(env.set_state(state.agent, lifted).coverage) == 1


@pytest.mark.parametrize("name", TASKS)
def test_scripted_operators_do_the_task_and_differ(name):
    env, task = RobomimicEnv(name), load_task(CONFIG / f"{name}.yaml")
    seeds = range(FIRST.get(name, 0), FIRST.get(name, 0) + 3)
    found = [item for seed in seeds if (item := demonstrate(env, task, seed)) is not None]
    assert len(found) >= 2
    for item in found:
        item.validate(task)
    assert len({item.rows for item in found}) == len(found)
    again = demonstrate(env, task, int(found[0].seeds[0]))
    assert again is not None and again.sha256 == found[0].sha256


def test_a_picture_is_drawn_as_the_command_starts(monkeypatch):
    """bid keeps MuJoCo from opening OpenGL by itself, whatever the user asked for."""
    for name, value in opengl_variables().items():
        monkeypatch.setenv(name, value)
    env = RobomimicEnv("lift")
    state = env.reset(3)
    before = env.picture(state, 128)
    lifted = state.block.copy()
    lifted[-5] += 0.1
    after = env.picture(env.set_state(state.agent, lifted), 128)
    assert before.shape == (128, 128, 3) and before.std() > 20
    assert (np.abs(before.astype(int) - after).max(axis=-1) > 30).mean() > 0.005


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda env: env.reset(-1), "seed is -1; valid is 0 to 4294967295"),
        (lambda env: env.step(np.zeros(7)), "valid are 10 finite numbers"),
        (lambda env: env.step(np.full(10, np.nan)), "valid are 10 finite numbers"),
        (lambda env: RobomimicEnv("lift", 2.0), "drift is 2; valid is 0: what lies on the table stays there"),
        (lambda env: RobomimicEnv("juggle"), "task 'juggle' is not one of robomimic's here; valid are lift"),
    ],
)
def test_what_it_refuses(env, act, said):
    with pytest.raises(BidError, match=said):
        act(env)

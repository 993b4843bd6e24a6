"""Adroit's door: it runs in an environment of its own, ``make benchmarks``."""

import numpy as np
import pytest

from bid_ros.bench.door.env import DoorEnv, observation_values, score
from bid_ros.core.errors import BidError
from bid_ros.sim import opengl_variables

pytest.importorskip("gymnasium_robotics", reason="gymnasium-robotics is not installed")


def test_the_same_seed_and_actions_give_the_same_states():
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 28))

    def last(env):
        env.reset(7)
        return [env.step(action) for action in actions][-1]

    one, other = last(DoorEnv()), last(DoorEnv())
    np.testing.assert_array_equal(one.shown, other.shown)
    np.testing.assert_array_equal(one.block, other.block)
    assert one.agent.shape == (28,) and {name: len(value) for name, value in observation_values(one).items()} == {
        "hand": 27,
        "door": 2,
        "palm_position": 3,
        "handle_position": 3,
    }


def test_a_state_is_set_as_it_was():
    env = DoorEnv()
    state = env.reset(3)
    for _ in range(10):
        state = env.step(np.full(28, 0.3))
    again = DoorEnv().set_state(state.agent, state.block)
    np.testing.assert_allclose(again.agent, state.agent, atol=1e-9)
    # The environment tells where palm and handle were before the last step of its physics, 2 ms earlier.
    np.testing.assert_allclose(again.shown, state.shown, atol=5e-3)


def test_an_open_door_scores_one():
    env = DoorEnv()
    state = env.reset(3)
    half = env.set_state(state.agent, [0.0, 0.675, *state.block[2:]])
    assert state.coverage == 0 and half.coverage == pytest.approx(0.5) and score(1.2) == 1.0


def test_a_picture_is_drawn_as_the_command_starts(monkeypatch):
    """bid keeps MuJoCo from opening OpenGL by itself, whatever the user asked for."""
    for name, value in opengl_variables().items():
        monkeypatch.setenv(name, value)
    env = DoorEnv()
    closed = env.picture(env.reset(3), 128)
    state = env.reset(3)
    opened = env.picture(env.set_state(state.agent, [0.0, 1.0, *state.block[2:]]), 128)
    assert closed.shape == (128, 128, 3) and closed.std() > 20
    assert (np.abs(closed.astype(int) - opened).max(axis=-1) > 30).mean() > 0.02


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda env: env.reset(-1), "seed is -1; valid is 0 to 4294967295"),
        (lambda env: env.step(np.zeros(27)), "valid are 28 finite numbers"),
        (lambda env: env.step(np.full(28, np.nan)), "valid are 28 finite numbers"),
        (lambda env: DoorEnv(2.0), "drift is 2; valid is 0: a door stays in its frame"),
    ],
)
def test_what_it_refuses(act, said):
    with pytest.raises(BidError, match=said):
        act(DoorEnv())

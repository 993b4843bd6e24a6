import subprocess
import sys

import numpy as np
import pytest

from bid_ros.bench.pusht.data import observation_values
from bid_ros.bench.pusht.env import AGENT_RADIUS, GOAL, PushTEnv, PushTState, keypoints, render, score
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task

pytest.importorskip("gym_pusht", reason="the extra 'bench' is not installed")

# First rows of human episodes: they pin the draw of the seeds, the order in which the start is set, and the physics.
HUMAN_STARTS = {
    0: ([222.0, 97.0], [222.99382, 381.59903, 3.007999]),
    1: ([87.0, 285.0], [158.16251, 357.18033, 5.970621]),
    205: ([372.0, 342.0], [368.70657, 333.89539, 2.390595]),
}
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("seed", HUMAN_STARTS)
def test_a_seed_is_the_start_of_the_human_episode_of_that_number(seed):
    state = PushTEnv().reset(seed)
    agent, block = HUMAN_STARTS[seed]
    np.testing.assert_allclose(state.agent, agent, atol=1e-4)
    np.testing.assert_allclose(state.block, block, atol=1e-4)


def test_a_state_is_set_exactly_and_nothing_of_the_last_episode_is_left():
    env = PushTEnv()
    first = env.set_state([100, 120], [300, 310, 4.0])
    assert (first.agent.tolist(), first.block.tolist()) == ([100, 120], [300, 310, 4.0])
    push = [env.step([300, 330]) for _ in range(8)]
    assert np.abs(push[-1].block - first.block).max() > 1
    env.set_state([100, 120], [300, 310, 4.0])
    again = [env.step([300, 330]) for _ in range(8)]
    assert [list(state.block) for state in again] == [list(state.block) for state in push]


def test_the_agent_goes_where_it_is_sent_and_a_block_out_of_its_way_stays():
    env = PushTEnv()
    start = env.set_state([100, 100], [400, 400, 1.0])
    for _ in range(20):
        state = env.step(np.array([150.0, 90.0]))
    np.testing.assert_allclose(state.agent, [150, 90], atol=0.1)
    np.testing.assert_allclose(state.block, start.block, atol=1e-9)


def gym_coverage(env):
    """What gym-pusht itself measures of the present state."""
    return type(env._gym)._get_coverage(env._gym)


@pytest.mark.parametrize("drift", [0.0, 1.5])
def test_coverage_after_every_step_is_the_one_gym_pusht_measures(drift):
    env = PushTEnv(drift)
    env.set_state([GOAL[0] + 150, GOAL[1]], [GOAL[0] - 20, GOAL[1] + 15, GOAL[2] + 0.2])
    coverages = []
    for _ in range(15):
        coverages.append(env.step([GOAL[0] - 60, GOAL[1]]).coverage)
        assert coverages[-1] == pytest.approx(gym_coverage(env), abs=1e-12)
    assert np.ptp(coverages) > 0.1  # the block was pushed over the mark


def test_coverage_is_one_on_the_mark_none_off_it_and_part_between():
    env = PushTEnv()
    assert env.set_state([50, 50], GOAL).coverage == pytest.approx(1)
    assert env.set_state([50, 50], [450, 100, 0]).coverage == 0
    half = env.set_state([50, 50], [GOAL[0] + 10, GOAL[1], GOAL[2]]).coverage
    assert 0.5 < half < 0.9
    assert half == pytest.approx(gym_coverage(env), abs=1e-12)
    assert (score(0.0), score(0.475), score(0.95), score(1.0)) == (0, pytest.approx(0.5), 1, 1)


@pytest.mark.parametrize("drift", [1.0, -2.5])
def test_drift_moves_a_free_block_by_as_much_every_step_and_coverage_follows(drift):
    env = PushTEnv(drift)
    start = env.set_state([30, 480], GOAL)
    states = [env.step([30, 480]) for _ in range(10)]
    for count, state in enumerate(states, 1):
        np.testing.assert_allclose(state.block - start.block, [drift * count, drift * count, 0], atol=1e-9)
        np.testing.assert_allclose(state.keypoints - start.keypoints, drift * count, atol=1e-9)
    coverages = [start.coverage, *(state.coverage for state in states)]
    assert coverages == sorted(coverages, reverse=True) and coverages[1] < 1


def test_drift_stops_at_the_wall():
    env = PushTEnv(2.0)
    env.set_state([100, 100], [400, 400, 0])
    for _ in range(100):
        state = env.step([100, 100])
    assert state.block[:2].max() < 506


TRAJECTORY = """
import hashlib, sys
import numpy as np
from bid_ros.bench.pusht.env import PushTEnv
env = PushTEnv(0.5)
rows = [env.reset(100_007)]
targets = np.random.default_rng(3).uniform(100, 400, (40, 2))
rows += [env.step(target) for target in targets]
values = np.array([[*row.agent, *row.block, row.coverage, *row.keypoints.ravel()] for row in rows])
digest = hashlib.sha256(values.tobytes()).hexdigest()
"""


def test_another_process_gets_the_same_episode_to_the_last_bit():
    here = {}
    exec(TRAJECTORY, here)
    there = subprocess.run(
        [sys.executable, "-c", TRAJECTORY + "print(digest)"], capture_output=True, text=True, timeout=60, check=True
    )
    assert there.stdout.strip() == here["digest"]
    assert np.ptp(here["values"][:, 2]) > 1  # the block was pushed


def test_seeds_differ():
    env = PushTEnv()
    starts = {tuple(env.reset(seed).block) for seed in range(100_000, 100_010)}
    assert len(starts) == 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda env: PushTEnv(NAN), "drift is nan; valid is a finite"),
        (lambda env: PushTEnv(INF), "drift is inf"),
        (lambda env: env.reset(-1), "seed is -1; valid is 0 to 4294967295"),
        (lambda env: env.reset(2**32), "seed is 4294967296"),
        (lambda env: env.step([1.0, NAN]), r"action is \[1.0, nan\]; valid are 2 finite"),
        (lambda env: env.step([1.0]), r"action is \[1.0\]"),
        (lambda env: env.set_state([1.0, 2.0], [1.0, 2.0]), r"block is \[1.0, 2.0\]; valid are 3"),
        (lambda env: env.set_state([1.0, INF], [1.0, 2.0, 0.0]), "agent is"),
        (lambda env: PushTEnv().step([1.0, 2.0]), "before the first reset"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, words):
    env = PushTEnv()
    env.reset(0)
    with pytest.raises(BidError, match=words):
        call(env)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gym_pusht.envs.pusht", None)
    with pytest.raises(BidError, match="extra 'bench'"):
        PushTEnv()


def test_the_observation_is_what_the_task_file_names(root):
    task = load_task(root / "config" / "pusht.yaml")
    state = PushTEnv().reset(3)
    values = observation_values(state)
    assert {name: value.shape for name, value in values.items()} == {item.name: item.shape for item in task.observation}
    np.testing.assert_array_equal(values["block_keypoints"][2:4], state.keypoints[1])
    np.testing.assert_array_equal(values["agent_position"], state.agent)
    assert (task.action_dim, task.horizon, task.observation_steps, task.rate_hz) == (2, 16, 2, 10)


def test_key_points_turn_and_move_with_the_block():
    local = keypoints([0, 0, 0])
    turned = keypoints([100, 50, np.pi / 2])
    np.testing.assert_allclose(turned, np.stack([100 - local[:, 1], 50 + local[:, 0]], axis=1), atol=1e-9)
    both = keypoints([[0, 0, 0], [100, 50, np.pi / 2]])
    np.testing.assert_allclose(both, [local, turned])


def test_the_picture_shows_agent_block_and_mark_where_they_are():
    block = np.array([400.0, 100.0, 0.0])
    state = PushTState(np.array([120.0, 400.0]), block, keypoints(block), 0.0)
    picture = render(state, 256)
    assert (picture.shape, picture.dtype) == ((256, 256, 3), np.uint8)
    table = picture[20, 20]

    def at(x, y):
        return picture[round(y / 2), round(x / 2)]

    assert at(120, 400)[2] > at(120, 400)[0] + 100  # the agent is blue
    assert (at(120 + AGENT_RADIUS + 4, 400) == table).all()
    assert (at(400, 160) == at(350, 115)).all() and at(400, 160).max() < 160  # stem and bar of the block are dark
    assert (at(440, 160) == table).all()
    middle = at(GOAL[0] - 20, GOAL[1] + 20)
    assert middle[1] > middle[0] + 30 and middle[1] > middle[2] + 30  # the mark is green
    with pytest.raises(BidError, match="8 px"):
        render(state, 8)

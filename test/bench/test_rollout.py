from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_scene import TASK

from bid_ros.bench.cell import BenchPlan, Unit, make_cell
from bid_ros.bench.episode import BenchEpisode
from bid_ros.bench.rollout import load_policy, run_unit
from bid_ros.core.task import parse_task
from bid_ros.policy.base import Capabilities

TIMES = {"encode_ms", "sample_ms", "choose_ms", "world_ms"}
BID = {"decoder": "bid", "samples": 8, "weak": True, "variant": "corrected"}


def unit_of(setup, episodes, steps=60, seed=1, **settings):
    cell = make_cell(setup.task, **{"decoder": "vanilla", "horizon": 1, **settings})
    return Unit(cell, seed, tuple(episodes), steps)


def run(unit, setup, batch):
    progress = []
    done = run_unit(unit, setup, batch, progress.append)
    assert sum(progress) == pytest.approx(len(unit.episodes) * unit.steps * unit.cell.effort)
    return done


def numbers(done):
    return {row["episode"]: {name: row[name] for name in row if name not in TIMES} for row in done.rows}


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": 1.0},
        {"horizon": 8, "drift": 0.5},
        {"decoder": "ema", "ema_weight": 0.5},
        {"decoder": "warmstart", "warm_start": "renoise", "noise": 1.0},
        {**BID, "noise": 1.0, "delay": 2},
    ],
)
def test_numbers_do_not_depend_on_the_batch(setup, batch, settings):
    together = run(unit_of(setup, range(5), **settings), setup, batch)
    alone = [run(unit_of(setup, [index], **settings), setup, batch) for index in range(5)]
    expected = {key: row for done in alone for key, row in numbers(done).items()}
    assert numbers(together) == expected
    for trace, done in zip(together.traces, alone, strict=True):
        assert np.array_equal(trace.commands, done.traces[0].commands)
        assert np.array_equal(trace.blocks, done.traces[0].blocks)


def test_another_seed_or_episode_is_another_scene(setup, batch):
    starts = [
        run(unit_of(setup, [index], steps=1, seed=seed), setup, batch).traces[0].agents[0]
        for seed, index in ((1, 0), (1, 1), (2, 0))
    ]
    assert len({tuple(start) for start in starts}) == 3


def test_full_score_ends_an_episode_early(setup, batch):
    done = run(unit_of(setup, range(6), steps=80), setup, batch)
    rows = numbers(done).values()
    assert all(row["success"] and row["score"] == 1 and 5 < row["steps"] < 80 for row in rows)
    for row, trace in zip(rows, done.traces, strict=True):
        assert len(trace.commands) == row["steps"] == len(trace.agents) - 1 == row["decisions"]
        last = np.linalg.norm(trace.agents[-1] - trace.blocks[-1])
        assert last < 20 < np.linalg.norm(trace.agents[-2] - trace.blocks[-2]) + 1e-3


def test_a_longer_horizon_decides_less_often(setup, batch):
    rows = run(unit_of(setup, range(3), steps=17, horizon=8), setup, batch).rows
    assert [row["decisions"] for row in rows] == [3, 3, 3]


def test_noise_and_drift_disturb(setup, batch):
    plain = run(unit_of(setup, [0], steps=20), setup, batch).traces[0]
    noisy = run(unit_of(setup, [0], steps=20, noise=1.5), setup, batch).traces[0]
    drifting = run(unit_of(setup, [0], steps=20, drift=2.0), setup, batch).traces[0]
    assert not np.allclose(plain.commands, noisy.commands)
    np.testing.assert_allclose(drifting.blocks[-1] - drifting.blocks[0], [40, 40, 0], atol=1e-3)


def test_a_delayed_chunk_begins_with_the_row_for_its_instant(setup, batch):
    """With a delay of 3 the agent first waits; then it executes what was decided 3 steps before, 3 rows on."""
    trace = run(unit_of(setup, [0], steps=12, horizon=4, delay=3), setup, batch).traces[0]
    np.testing.assert_array_equal(trace.commands[:3], np.repeat(trace.agents[:1], 3, axis=0))

    cell = make_cell(setup.task, decoder="vanilla", horizon=4, delay=3)
    episode = BenchEpisode(Unit(cell, 1, (0,), 12), 0, setup, load_policy(setup).unbatched, 1.0)
    rows = np.arange(48.0).reshape(16, 3)
    executed = []
    for step in range(12):
        if (draft := episode.propose()) is not None:
            episode.accept(draft, rows[None] + 100 * step, None)
        episode.act()
        executed.append(episode.trace().commands[-1][0])
    # Row 1 is the current step of a decision; the one at step 4 k is executed from step 4 k + 3 on, row 1 + 3 first.
    expected = [100 * start + 3 * row for start in (0, 4) for row in (4, 5, 6, 7)]
    assert executed[3:11] == expected
    assert executed[11] == 100 * 8 + 3 * 4


class Ahead:
    """Predicts nothing of the past: four of its nine rows are made up."""

    runtime, has_weak, capabilities = "numpy", False, Capabilities(made_up_rows=4)

    def encode(self, observation, weak=True):
        return None


def test_noise_follows_the_rows_that_are_predicted(setup):
    task = parse_task({**TASK, "observation_steps": 5, "horizon": 9})
    cell = make_cell(task, decoder="vanilla", horizon=5, noise=1.0)
    rows = np.random.default_rng(0).uniform(100, 400, (9, 3))

    def commands(early):
        episode = BenchEpisode(Unit(cell, 1, (0,), 5), 0, replace(setup, task=task), Ahead(), 1.0)
        episode.accept(episode.propose(), np.concatenate([early, rows[3:]])[None], None)
        for _ in range(5):
            episode.act()
        return episode.trace().commands

    found = commands(rows[:3])
    assert np.abs(found - rows[4:]).min() > 0
    np.testing.assert_array_equal(commands(rows[:3] + 50), found)


class Forgetful(Ahead):
    """Sees one observation, and makes up nothing."""

    capabilities = Capabilities()


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_policy_without_a_history_executes_its_whole_chunk(setup, noise):
    task = parse_task({**TASK, "observation_steps": 1, "horizon": 4})
    cell = make_cell(task, decoder="vanilla", horizon=4, noise=noise)
    rows = np.random.default_rng(0).uniform(100, 400, (4, 3))
    episode = BenchEpisode(Unit(cell, 1, (0,), 4), 0, replace(setup, task=task), Forgetful(), 1.0)
    episode.accept(episode.propose(), rows[None], None)
    for _ in range(4):
        episode.act()
    off = np.abs(episode.trace().commands - rows).min(axis=1)
    assert off[0] < 1e-4, "no step leads to the first row"
    assert (off[1:] > 1e-3).all() == (noise > 0)


def test_a_jump_displaces_the_block_once_by_its_length(setup, batch):
    unit = unit_of(setup, range(4), steps=60, jump=50.0, decoder="vanilla")
    slow = replace(setup, scene=replace(setup.scene, score=lambda coverage: 0.5 * coverage))
    done = run(unit, slow, batch)
    for row, trace in zip(done.rows, done.traces, strict=True):
        moves = np.linalg.norm(np.diff(trace.blocks, axis=0), axis=1)
        # States are seen after a step, so the jump before step k is the move from state k - 1 to state k.
        assert np.flatnonzero(moves).tolist() == [row["jump_step"] - 1]
        assert moves.max() == pytest.approx(50, abs=1e-3)
        assert 30 <= row["jump_step"] < 45


def test_switches_need_decisions_that_lie_apart(setup, batch):
    calm = run(unit_of(setup, range(3), steps=20), setup, batch).rows
    assert all(row["overlaps"] == row["decisions"] - 1 and row["overlap_px"] > 0 for row in calm)
    open_loop = run(unit_of(setup, range(3), steps=20, horizon=15), setup, batch).rows
    assert all(row["overlaps"] == 0 and row["overlap_px"] is None for row in open_loop)


def test_a_plan_leaves_out_what_is_done(setup):
    cell = make_cell(setup.task, decoder="vanilla", horizon=1)
    done = {(cell.key, seed, index) for seed in (1, 2) for index in range(3)}
    assert BenchPlan(3, (1, 2), 10).units([cell], done) == []


class Marking:
    """Adds 1000 and the row, and notes which observations it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, np.ndarray, np.ndarray]] = []

    def correct(self, action, row, newest, decided):
        self.shown.append((row, newest.strong, decided))
        return action + 1000 + row


def test_each_executed_action_is_corrected_by_the_newest_observation(setup):
    cell = make_cell(setup.task, decoder="vanilla", horizon=4, delay=2)
    policy, marking = load_policy(setup).unbatched, Marking()
    episode = BenchEpisode(Unit(cell, 1, (0,), 10), 0, setup, policy, 1.0, marking)
    rows, decided, executed = np.zeros((16, 3)), [], []
    for _ in range(10):
        if (draft := episode.propose()) is not None:
            decided.append(draft.encoded.strong)
            episode.accept(draft, rows[None], None)
        episode.act()
        executed.append(float(episode.trace().commands[-1][0]))
    # Two steps of waiting, which nothing corrects; then row 2 of a decision is the first that is executed.
    assert executed[2:] == [1002, 1003, 1004, 1005] * 2
    assert [row for row, _, _ in marking.shown] == [2, 3, 4, 5] * 2
    assert all(np.array_equal(old, decided[index // 4]) for index, (_, _, old) in enumerate(marking.shown))
    assert len({newest.tobytes() for _, newest, _ in marking.shown}) == 8

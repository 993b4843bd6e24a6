"""The line, its demonstrator and the learners, against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from bid_ros.bench.diagnostic.process import (
    COUNTS,
    DISTANCES,
    GOAL,
    PAUSE_STATE,
    Imitator,
    Rollouts,
    demonstrate,
    histogram,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_without_noise_the_demonstrator_walks_pauses_and_walks_on():
    shown = demonstrate(0.0, 4, 20, 3, rng())
    for states, forward in zip(shown.states, shown.forward, strict=True):
        assert states.tolist() == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 6, 7, 8, 9, *[10] * 7]
        assert np.flatnonzero(~forward).tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_a_forward_move_fails_with_the_noise(noise):
    shown = demonstrate(noise, 2, 60, 4000, rng())
    tries = shown.forward & (shown.states[:, :-1] < GOAL)
    failed = (shown.states[:, 1:] == shown.states[:, :-1])[tries].mean()
    assert failed == pytest.approx(noise, abs=0.01)
    assert (np.diff(shown.states, axis=1) >= 0).all()


def test_the_demonstrator_is_idle_as_often_however_noisy_it_is():
    shown = demonstrate(0.4, 3, 60, 500, rng())
    assert ((~shown.forward).sum(axis=1) == 3).all()
    assert (shown.states[:, :-1][~shown.forward] == PAUSE_STATE).all()


def test_chunks_are_those_that_followed_the_state():
    learner = Imitator(demonstrate(0.0, 2, 15, 5, rng()), horizon=3)
    starts = np.repeat(np.array([0, 4, 5], dtype=np.int8), 200)
    chunks = learner.chunks(starts, rng(1)).reshape(3, 200, 3)
    assert chunks[0].all()
    assert {tuple(chunk) for chunk in chunks[1].tolist()} == {(True, False, False)}
    shares = {(False, False, True): 0, (False, True, True): 0, (True, True, True): 0}
    for chunk in chunks[2].tolist():
        shares[tuple(chunk)] += 1
    assert min(shares.values()) > 40  # each follows a third of the visits to s5


def test_where_the_demonstrator_never_was_the_learner_moves_on():
    learner = Imitator(demonstrate(0.0, 9, 10, 5, rng()), horizon=2)
    assert learner.chunks(np.array([7, 7], dtype=np.int8), rng()).all()


def test_a_learner_looks_at_the_state_every_h_steps():
    """Without noise a chunk of ten from s0 holds the whole pause of four, so nothing is left to get wrong."""
    shown = demonstrate(0.0, 4, 20, 50, rng())
    rolled = Imitator(shown, 10).roll_out(0.0, 20, 50, rng())
    np.testing.assert_array_equal(rolled.states, shown.states)
    shorter = Imitator(shown, 7).roll_out(0.0, 20, 50, rng())
    assert set((~shorter.forward).sum(axis=1)) == {2, 3, 4, 5, 6}


STATES = np.array([[3, 3, 4, 5, 5, 5, 9, 10, 10], [5, 5, 5, 5, 5, 5, 5, 5, 5]], dtype=np.int8)
FORWARD = np.array([[0, 1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 1, 0, 1, 1, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("count", "wanted"), [("idle", [2, 4]), ("idle-s5", [1, 4]), ("stay", [3, 8]), ("stay-s5", [2, 8])]
)
def test_what_is_counted(count, wanted):
    assert COUNTS[count](Rollouts(STATES, FORWARD)).tolist() == wanted


def test_a_histogram_is_shares():
    np.testing.assert_array_equal(histogram(np.array([0, 2, 2, 3]), 6), [0.25, 0, 0.5, 0.25, 0, 0])


def test_distances():
    first, second = np.random.default_rng(0).dirichlet(np.ones(12), size=2)
    places = np.arange(12)
    assert DISTANCES["wasserstein"](first, second) == pytest.approx(wasserstein_distance(places, places, first, second))
    assert DISTANCES["summed"](first, second) == pytest.approx(2 * DISTANCES["total-variation"](first, second))
    assert DISTANCES["total-variation"](np.array([1.0, 0]), np.array([0, 1.0])) == 1

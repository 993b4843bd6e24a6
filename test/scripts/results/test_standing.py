"""``scripts/results standing``: how long a robot stands still, on paths that can be worked out by hand."""

from __future__ import annotations

import numpy as np
from results.standing import standing, still_seconds

STEPS = 10


def path(*speeds):
    """Return positions of a robot that goes at a speed (1 a second) in each second."""
    moved = np.repeat(np.array(speeds, dtype=np.float64), STEPS) / STEPS
    return np.concatenate([[0.0], np.cumsum(moved)])[:, None]


def test_a_second_without_motion_is_one_at_rest():
    assert still_seconds(path(1, 0, 1, 0.01), STEPS, 0.02) == [False, True, False, True]


def test_stuck_is_a_failed_episode_that_ends_at_rest():
    moves, stops, pauses = path(1, 1, 1, 1), path(1, 0, 0, 0), path(0, 0, 0, 1)
    share, failed, stuck = standing([moves, stops, pauses, stops], [False, False, False, True], STEPS, 1.0)
    assert share == 9 / 16
    assert (failed, stuck) == (3, 1), "who has full score, or moves at the end, is not stuck"


def test_an_episode_shorter_than_the_last_seconds_is_not_stuck():
    assert standing([path(0, 0)], [False], STEPS, 1.0)[1:] == (1, 0)

"""``scripts/results pusht-progress``: when the block covers its mark, and how long the agent rests."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.pusht.env import GOAL

FAR = (60.0, 60.0, 0.0)


@pytest.fixture
def progress():
    from results import pusht_progress

    return pusht_progress


def trace(blocks, agents):
    agents = np.asarray(agents, dtype=np.float32)
    return EpisodePath(agents[1:], agents, np.asarray(blocks, dtype=np.float32))


def test_a_block_on_its_mark_covers_it_and_one_beside_does_not(progress):
    mark = progress.block_shape(np.array(GOAL))
    assert mark.area == pytest.approx(120 * 30 + 30 * 90)
    assert not progress.block_shape(np.array(FAR)).intersection(mark).area
    moved = progress.block_shape(np.array([GOAL[0] + 5.0, *GOAL[1:]]))
    assert 0.5 < moved.intersection(mark).area / mark.area < 0.95


def test_the_first_step_at_each_share_is_found(progress):
    resting = [(0.0, 0.0)] * 11
    walking = [(2.0 * step, 0.0) for step in range(11)]
    arrives = trace([FAR] * 6 + [GOAL] * 5, resting)
    never = trace([FAR] * 11, walking)
    assert progress.progress([arrives]) == ["6 (1 of 1)", "6 (1 of 1)", "100 %"]
    assert progress.progress([never]) == ["never (0 of 1)", "never (0 of 1)", "0 %"]
    assert progress.progress([arrives, arrives, never]) == ["6 (2 of 3)", "6 (2 of 3)", "67 %"]

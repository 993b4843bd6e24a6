from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.smoothness import overlap_distance, reaction_steps, rms_jerk


def test_the_jerk_of_a_cubic_is_its_third_derivative():
    t = np.arange(10) * 0.1
    assert rms_jerk(np.stack([5 * t**3, 0 * t], axis=1), 0.1) == pytest.approx(30.0)
    assert rms_jerk(np.zeros((3, 2)), 0.1) == 0


def test_decisions_are_compared_at_the_same_future_instants():
    before = np.arange(32.0).reshape(16, 2)
    after = np.concatenate([before[3:], np.zeros((3, 2))])
    assert overlap_distance(after, before[3:], 2) == 0
    assert overlap_distance(after + np.array([3, 4]), before[3:], 2) == pytest.approx(5)
    assert overlap_distance(after, before[15:], 2) is None


def test_a_reaction_is_counted_from_the_jump():
    without = np.zeros((20, 2))
    commands = without.copy()
    commands[:, 0] = np.where(np.arange(20) >= 9, 31, np.where(np.arange(20) >= 6, 10, 0))
    assert reaction_steps(commands, without, 5, 60) == 4
    assert reaction_steps(commands, without, 5, 80) is None

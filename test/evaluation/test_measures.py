"""What is measured of one decision, on cases that can be worked out by hand."""

import numpy as np
import pytest

from bid_ros.evaluation.measures import Scale, judged

SCALE = Scale(np.array([1.0, 2.0]))
STILL = np.zeros((4, 2))


def test_the_demonstration_itself_has_no_error_and_is_covered():
    ramp = np.arange(8.0).reshape(4, 2)
    found, _ = judged(ramp, np.stack([ramp, ramp + 9]), ramp, None, SCALE, 1.5)
    assert (found["error"], found["first"], found["last"], found["best"]) == (0, 0, 0, 0)
    assert (found["covered"], found["choose_ms"]) == (1.0, 1.5)
    assert "coherence" not in found, "there is no decision before"


def test_distances_are_in_spreads_over_all_values():
    off = STILL + np.array([0.3, 0.8])  # 0.3 and 0.4 spreads
    found, _ = judged(off, np.stack([off, STILL]), STILL, None, SCALE, 0.0)
    assert found["error"] == pytest.approx(np.sqrt((0.09 + 0.16) / 2))
    assert found["best"] == 0.0
    assert found["spread"] == pytest.approx(found["error"] / 2)


def test_near_the_end_only_the_rows_that_were_done_count():
    chosen = np.array([[0.0, 0.0], [5.0, 0.0], [9.0, 0.0]])
    found, _ = judged(chosen, chosen[None], np.zeros((1, 2)), None, SCALE, 0.0)
    assert (found["error"], found["last"]) == (0.0, 0.0)


def test_coherence_compares_the_same_instants_and_a_large_leap_is_a_switch():
    near, far = (judged(STILL + step, STILL[None] + step, STILL, STILL[:3], SCALE, 0.0)[0] for step in (0.1, 0.5))
    assert near["coherence"] == pytest.approx(np.sqrt((0.01 + 0.0025) / 2))
    assert (near["switch"], far["switch"]) == (0.0, 1.0)

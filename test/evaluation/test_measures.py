"""What is measured of one decision, on cases that can be worked out by hand."""

import numpy as np
import pytest

from bid_ros.evaluation.measures import JudgedDecision, Scale, strategies

SCALE = Scale(np.array([1.0, 2.0]))
STILL = np.zeros((4, 2))
TIMES = {"choose_ms": 1.5}


def right(spreads):
    """Return the actions at rest, moved along the first value."""
    return STILL + np.array([spreads, 0.0])


def judged(chosen, samples, demonstrated, before=None, strong=None, weak=None):
    moment = JudgedDecision(SCALE, demonstrated, samples if strong is None else strong, weak)
    return moment.judged(chosen, samples, before, TIMES)


def test_the_demonstration_itself_has_no_error_and_is_covered():
    ramp = np.arange(8.0).reshape(4, 2)
    found, errors = judged(ramp, np.stack([ramp, ramp + 9]), ramp)
    assert (found["error"], found["first"], found["last"], found["best"]) == (0, 0, 0, 0)
    assert (found["covered"], found["choose_ms"]) == (1.0, 1.5)
    assert errors.tolist() == [0, 0, 0, 0]
    assert not {"coherence", "switch", "backward"} & found.keys(), "there is no decision before"


def test_a_choice_is_held_against_a_random_one_of_its_samples():
    samples = np.stack([right(step) for step in (0, 1, 2, 5)])
    found, _ = judged(samples[2], samples, STILL)
    assert found["random"] == pytest.approx(2 / np.sqrt(2))  # the mean of 0, 1, 2 and 5
    assert found["gain"] == pytest.approx(0)
    assert judged(samples[1], samples, STILL)[0]["gain"] == pytest.approx(1 / np.sqrt(2))
    assert judged(samples[3], samples, STILL)[0]["gain"] == pytest.approx(-3 / np.sqrt(2))


def test_distances_are_in_spreads_over_all_values():
    off = STILL + np.array([0.3, 0.8])  # 0.3 and 0.4 spreads
    found, _ = judged(off, np.stack([off, STILL]), STILL)
    assert found["error"] == pytest.approx(np.sqrt((0.09 + 0.16) / 2))
    assert found["best"] == 0.0
    assert found["spread"] == pytest.approx(found["error"] / 2)


def test_a_value_that_did_not_vary_in_training_does_not_count():
    scale = Scale(np.array([1.0, 0.0, 2.0]))
    rows = np.array([[0.3, 5.0, 0.8]] * 4)
    moment = JudgedDecision(scale, np.zeros((4, 3)), np.stack([rows, -rows]), None)
    found, _ = moment.judged(rows, np.stack([rows, 0 * rows]), None, TIMES)
    assert found["error"] == pytest.approx(np.sqrt((0.09 + 0.16) / 2))
    assert found["spread"] == pytest.approx(found["error"] / 2)
    assert found["modes"] == 2.0 and np.isfinite(found["forward"])
    apart = rows + np.array([0.0, 1e-3, 0.0])
    assert moment.of_samples(np.stack([rows, apart]))["modes"] == 1.0


def test_near_the_end_only_the_rows_that_were_done_count():
    chosen = np.array([[0.0, 0.0], [5.0, 0.0], [9.0, 0.0]])
    found, errors = judged(chosen, chosen[None], np.zeros((1, 2)))
    assert (found["error"], found["last"], len(errors)) == (0.0, 0.0, 1)


def test_coherence_compares_the_same_instants_and_a_large_leap_is_a_switch():
    near, far = (judged(STILL + step, STILL[None] + step, STILL, STILL[:3])[0] for step in (0.1, 0.5))
    assert near["coherence"] == pytest.approx(np.sqrt((0.01 + 0.0025) / 2))
    assert (near["switch"], far["switch"]) == (0.0, 1.0)


def test_the_backward_loss_halves_the_weight_of_each_later_step():
    chosen = np.array([[0.0, 0.0], [0.0, 0.0], [7.0, 0.0], [0.0, 0.0]])
    found, _ = judged(chosen, chosen[None], STILL, STILL[:3])
    assert found["coherence"] == pytest.approx(7 / np.sqrt(2) / 3)
    assert found["backward"] == pytest.approx(7 / np.sqrt(2) * 0.25 / 1.75)


def test_the_forward_loss_is_small_near_strong_and_far_from_weak_samples():
    strong = np.stack([STILL, right(1), right(3), right(9)])
    weak = np.stack([right(4), right(6), right(50), right(60)])
    here = judged(STILL, strong, STILL, weak=weak)[0]["forward"]
    assert here == pytest.approx(((1 + 3) / 2 - (4 + 6) / 2) / np.sqrt(2)), "without the distance to itself"
    assert judged(right(4), strong, STILL, weak=weak)[0]["forward"] > here
    blend = judged(right(0.5), strong, STILL)[0]["forward"]
    assert blend == pytest.approx((0.5 + 0.5) / 2 / np.sqrt(2)), "no sample is the blend; without weak ones none repel"


def shown(*centres):
    found = strategies(SCALE.scaled(np.stack([right(centre) for centre in centres])))
    return found["modes"], found["disagreement"]


def test_modes_are_groups_further_apart_than_a_change_of_strategy():
    assert shown(0, 0.1, 0.2, 0.1) == (1, 0)
    assert shown(0, 0.1, 5, 5.1, 0, 0.1, 9, 9.1)[0] == 3
    assert shown(*[0.0] * 15, 5.0)[0] == 1, "a sixteenth of the samples is no mode"
    assert shown(0.0) == (1, 0), "one sample disagrees with none"


def test_disagreement_is_the_share_of_pairs_of_different_strategies():
    assert shown(0, 0, 5, 5)[1] == pytest.approx(4 / 6)
    assert shown(*[0.0] * 15, 5.0)[1] == pytest.approx(15 / 120), "what is no mode still disagrees"

"""The fit of N to the time of a decision: steps down at once, steps up with patience."""

import time
from itertools import pairwise

import pytest
from policy.remote.served import remote_bundle, serving

from bid_ros.core.errors import BidError, RemoteError
from bid_ros.policy.budget import (
    FEW,
    GIVEN_UP_NS,
    LATE,
    PATIENCE,
    RECENT,
    WINDOW,
    DelayMeter,
    SampleBudget,
    decision_costs,
    ladder,
)
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy

MS = 1_000_000
COSTS = {16: 20 * MS, 8: 12 * MS, 4: 8 * MS, 1: 5 * MS}


def fitted(factor=1.0, budget_ms=30):
    budget = SampleBudget(16, budget_ms * MS)
    budget.calibrate({count: round(factor * cost) for count, cost in COSTS.items()})
    return budget


def run(budget, factor, decisions):
    """Decide on a machine that takes ``factor`` times the costs; return N of each decision."""
    drawn = []
    for _ in range(decisions):
        drawn.append(budget.samples)
        budget.took(round(factor * COSTS[budget.samples]))
    return drawn


@pytest.mark.parametrize(("most", "steps"), [(16, (16, 8, 4, 1)), (24, (24, 12, 6, 1)), (5, (5, 1)), (1, (1,))])
def test_the_numbers_to_choose_from(most, steps):
    assert ladder(most) == steps


@pytest.mark.parametrize(("factor", "samples"), [(1.0, 16), (1.5, 8), (2.5, 4), (4.0, 1), (50.0, 1)])
def test_calibration_takes_the_largest_number_that_fits(factor, samples):
    assert fitted(factor).samples == samples


def test_all_samples_are_drawn_while_decisions_are_in_time():
    assert set(run(fitted(), 1.0, 500)) == {16}


def test_late_decisions_take_steps_down_until_they_fit():
    drawn = run(fitted(), 3.0, 40)
    assert drawn[:WINDOW] == [16] * WINDOW and drawn[-1] == 4
    assert sum(3.0 * COSTS[count] > 30 * MS for count in drawn) == 2 * WINDOW


def test_decisions_of_more_than_twice_the_budget_take_a_step_down_at_once():
    drawn = run(fitted(), 4.0, 40)
    assert drawn[:LATE] == [16] * LATE and drawn[LATE] == 8


def test_single_late_decisions_change_nothing():
    budget = fitted()
    for decision in range(300):
        assert not budget.took((90 if decision % FEW == 0 else 40 if decision % 7 == 0 else 20) * MS)
    assert budget.samples == 16


def test_the_number_comes_back_when_the_load_is_gone():
    budget = fitted()
    run(budget, 3.0, 3 * WINDOW)
    assert budget.samples == 4
    drawn = run(budget, 1.0, 12 * PATIENCE)
    assert drawn[0] == 4 and drawn[-1] == 16


def test_a_number_that_did_not_fit_is_tried_ever_more_rarely():
    drawn = run(fitted(), 1.4, 4000)  # 16 take 28 of 30 ms: expected above the reserve, so it stays
    assert set(drawn) == {16}
    budget = SampleBudget(16, 30 * MS)  # without calibration a step up is a guess
    tries = []
    for decision in range(6000):
        late = budget.samples == 16
        tries += [decision] if late and (not tries or decision > tries[-1] + WINDOW) else []
        budget.took(40 * MS if late else 5 * MS)
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert len(pauses) >= 4 and all(later >= 1.5 * earlier for earlier, later in pairwise(pauses[:-1]))


def test_the_number_comes_back_beside_single_late_decisions():
    budget = fitted(4.0)
    assert budget.samples == 1
    for decision in range(20 * PATIENCE):
        budget.took(100 * MS if decision % FEW == 0 else COSTS[budget.samples])
    assert budget.samples == 16


def test_a_computer_that_is_too_slow_is_told_in_one_sentence():
    budget = fitted(50.0)
    assert budget.shortfall == ""
    run(budget, 50.0, 3)
    assert budget.shortfall.startswith("decisions of 1 sample take longer than their 30 ms; use a faster computer")


def test_no_step_up_while_decisions_are_late():
    budget = SampleBudget(8, 30 * MS)
    budget.calibrate({8: 40 * MS, 4: 30 * MS, 1: 5 * MS})
    for decision in range(20 * PATIENCE):
        budget.took((100 if decision % FEW < LATE else 5) * MS)
        assert budget.samples == 1 and (decision < FEW or budget.shortfall)


def test_a_burst_of_load_does_not_keep_the_number_low_for_long():
    budget = fitted()
    for _ in range(5):  # bursts, each to a single sample
        run(budget, 50.0, 10)
        assert budget.samples == 1
        run(budget, 1.0, 4 * PATIENCE)
        assert budget.samples == 16


@pytest.mark.parametrize("values", [(0, MS), (16, 0)])
def test_bad_values_are_refused(values):
    with pytest.raises(BidError, match="valid are whole numbers of at least 1"):
        SampleBudget(*values)


def test_costs_are_those_of_new_frames(task, tiny):
    policy, seen = load_policy(load_bundle(tiny, task), task, "onnx"), []
    encode = policy.encode

    def noted(observation, weak):
        seen.append(observation.values[task.cameras[0].name].max())
        return encode(observation, weak)

    policy.encode = noted
    decision_costs(policy, task, (2, 1), weak=False)
    assert all(one != other for one, other in pairwise(seen)) and len(seen) > 6


def test_costs_are_measured_for_every_number(task, tiny):
    costs = decision_costs(load_policy(load_bundle(tiny, task), task, "onnx"), task, (8, 4, 1), weak=True)
    assert list(costs) == [8, 4, 1] and min(costs.values()) > 0


@pytest.fixture
def slow(task, tiny, tmp_path):
    """A policy on a server that takes 0.6 s where more samples than ``slow.most`` are drawn; 0.4 s are waited for."""
    bundle = load_bundle(tiny, task)
    there = load_policy(bundle, task, "onnx")
    sample = there.sample

    def slowly(encoded, strong, *rest, **named):
        if strong > remote.most:
            time.sleep(0.6)
        return sample(encoded, strong, *rest, **named)

    there.sample = slowly
    with serving(there, bundle, task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=400.0)
        remote = load_policy(pointer, task)
        yield remote


def test_numbers_that_a_server_does_not_answer_in_time_are_not_taken(task, slow):
    slow.most = 4
    costs = decision_costs(slow, task, (16, 8, 4, 1), weak=False)
    assert costs[16] == costs[8] == GIVEN_UP_NS and 0 < max(costs[4], costs[1]) < 400 * MS
    budget = SampleBudget(16, 450 * MS)
    budget.calibrate(costs)
    for _ in range(20 * PATIENCE):
        assert budget.samples == 4
        budget.took(5 * MS)


def test_a_server_that_does_not_answer_a_single_sample_in_time_is_an_error(task, slow):
    slow.most = 0
    with pytest.raises(RemoteError, match="did not answer within 400 ms"):
        decision_costs(slow, task, (4, 1), weak=False)


STEP = 100_000_000


@pytest.mark.parametrize(("delay_ns", "steps"), [(0, 0), (1, 1), (STEP, 1), (STEP + 1, 2), (-5, 0)])
def test_a_step_that_has_begun_counts(delay_ns, steps):
    meter = DelayMeter(STEP)
    assert meter.steps is None
    meter.took(delay_ns)
    assert meter.steps == steps


def test_the_longest_of_the_last_decisions_counts_until_they_have_passed():
    meter = DelayMeter(STEP)
    meter.took(3 * STEP)
    for _ in range(RECENT - 1):
        meter.took(STEP // 2)
        assert meter.steps == 3
    meter.took(STEP // 2)
    assert meter.steps == 1

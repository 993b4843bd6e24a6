"""The decision memory aligns by time, whatever number of decisions was skipped."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import DecisionMemory, DecodingError

DT = 100_000_000
START = 1_700_000_000_000_000_000  # of the size of real stamps, where floats would lose nanoseconds
ACTIONS = np.arange(32.0).reshape(16, 2)


@pytest.fixture
def memory():
    memory = DecisionMemory()
    memory.remember(START, DT, ACTIONS)
    return memory


@pytest.mark.parametrize(
    ("passed_ns", "executed"),
    [
        (0, 0),
        (DT, 1),
        (DT + DT // 2 - 1, 1),  # late, still nearest to one step
        (DT + DT // 2, 2),
        (DT - DT // 2, 1),
        (3 * DT - 1, 3),  # two decisions were skipped
        (15 * DT, 15),
    ],
)
def test_the_shift_is_the_time_that_passed(memory, passed_ns, executed):
    previous, passed, steps = memory.previous_for(START + passed_ns)
    assert passed == steps == executed
    np.testing.assert_array_equal(previous, ACTIONS[executed:])


@pytest.mark.parametrize("passed_ns", [16 * DT, 1000 * DT, -DT])
def test_nothing_overlaps_after_the_end_or_before_the_start(memory, passed_ns):
    assert memory.previous_for(START + passed_ns) is None


def test_whole_numbers_are_remembered_as_actions():
    memory = DecisionMemory()
    memory.remember(START, 1, [[1, 2], [3, 4]])
    overlap = memory.previous_for(START + 1)
    assert overlap.previous.dtype == np.float64
    np.testing.assert_array_equal(overlap.previous, [[3.0, 4.0]])


def test_reset_forgets(memory):
    memory.reset()
    assert memory.previous_for(START + DT) is None
    memory.remember(START, DT, ACTIONS)
    assert memory.previous_for(START + DT) is not None


def test_only_the_last_decision_is_remembered(memory):
    memory.remember(START + DT, DT, ACTIONS + 100)
    overlap = memory.previous_for(START + 2 * DT)
    assert overlap.executed == 1
    np.testing.assert_array_equal(overlap.previous, ACTIONS[1:] + 100)


@pytest.fixture
def between():
    memory = DecisionMemory(between=True)
    memory.remember(START, DT, ACTIONS)
    return memory


@pytest.mark.parametrize("passed_ns", [0, DT, DT + DT // 20, DT - DT // 20, 15 * DT])
def test_at_a_whole_step_nothing_is_interpolated(memory, between, passed_ns):
    """Stamps of cameras jitter: 5 ms beside a step is that step."""
    wanted, found = memory.previous_for(START + passed_ns), between.previous_for(START + passed_ns)
    assert wanted[1:] == found[1:]
    np.testing.assert_array_equal(found.previous, wanted.previous)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("step", [0, 4, 14])
def test_between_two_steps_rows_are_those_of_the_same_instants(between, step, share):
    found = between.previous_for(START + step * DT + round(share * DT))
    assert found.executed == step + 1 and found.steps == pytest.approx(step + share)
    instants = np.arange(step, 15) + share  # of ACTIONS, whose value at instant t is (2 t, 2 t + 1)
    np.testing.assert_allclose(found.previous, np.column_stack([2 * instants, 2 * instants + 1]), rtol=1e-12)


@pytest.mark.parametrize("passed_ns", [15 * DT + DT // 2, 1000 * DT, -DT // 2])
def test_between_steps_nothing_overlaps_after_the_last_row_or_before_the_first(between, passed_ns):
    assert between.previous_for(START + passed_ns) is None


def test_what_is_remembered_cannot_be_changed_from_outside():
    memory, actions = DecisionMemory(), ACTIONS.copy()
    memory.remember(START, DT, actions)
    actions[:] = 0
    overlap = memory.previous_for(START)
    np.testing.assert_array_equal(overlap.previous, ACTIONS)
    with pytest.raises(ValueError, match="read-only"):
        overlap.previous[0, 0] = 1


@pytest.mark.parametrize(
    ("dt_ns", "shape", "message"), [(0, (2, 2), "dt 0 ns"), (DT, (0, 2), "shape"), (DT, (4,), "shape")]
)
def test_impossible_decisions_are_refused(dt_ns, shape, message):
    with pytest.raises(DecodingError, match=message):
        DecisionMemory().remember(START, dt_ns, np.zeros(shape))


def test_what_is_executed_replaces_the_decision_of_its_stamp_alone(memory):
    memory.change(START + 1, lambda rows: rows + 99.0)
    np.testing.assert_array_equal(memory.previous_for(START + DT).previous, ACTIONS[1:])
    memory.change(START, lambda rows: rows * 0.5)
    np.testing.assert_array_equal(memory.previous_for(START + DT).previous, ACTIONS[1:] * 0.5)
    memory.reset()
    memory.change(START, lambda rows: rows * 0.5)
    assert memory.previous_for(START + DT) is None

import numpy as np
import pytest

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ChunkError

DT = 100_000_000
STAMP = 1_700_000_000_000_000_000


def chunk(rows=4, **fields):
    return ActionChunk(**{"stamp_ns": STAMP, "dt_ns": DT, "actions": np.zeros((rows, 2)), **fields})


@pytest.mark.parametrize(
    "actions", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2)), 1.0, [["a"]], [[1.0], [1.0, 2.0]]]
)
def test_what_is_no_matrix_is_refused(actions):
    with pytest.raises(ChunkError, match=r"shape|matrix"):
        chunk(actions=actions)


@pytest.mark.parametrize("dt_ns", [0, -1])
def test_time_must_pass_between_actions(dt_ns):
    with pytest.raises(ChunkError, match=f"{dt_ns} ns; valid is a positive time"):
        chunk(dt_ns=dt_ns)


def test_values_become_float64_and_are_not_judged():
    built = chunk(actions=[[1, 2], [3, float("nan")]])
    assert built.actions.dtype == np.float64 and built.actions.shape == (2, 2)


def test_the_last_action_holds_for_one_step():
    built = chunk(rows=4)
    assert (built.horizon, built.end_ns) == (4, STAMP + 4 * DT)


@pytest.mark.parametrize(
    ("offset", "covered"), [(-1, False), (0, True), (4 * DT - 1, True), (4 * DT, False), (-(10**18), False)]
)
def test_it_covers_from_its_stamp_up_to_its_end(offset, covered):
    assert chunk(rows=4).covers(STAMP + offset) is covered


@pytest.mark.parametrize(
    ("offset", "row"),
    [(-DT, 0.0), (0, 0.0), (DT // 2, 0.5), (DT, 1.0), (3 * DT, 3.0), (3 * DT + 1, 3.0), (99 * DT, 3.0)],
)
def test_the_position_is_a_fraction_of_rows_and_stays_on_them(offset, row):
    assert chunk(rows=4).position_at(STAMP + offset) == pytest.approx(row)


def test_nanoseconds_are_not_lost_at_the_size_of_real_stamps():
    assert chunk(dt_ns=10).position_at(STAMP + 7) == pytest.approx(0.7)

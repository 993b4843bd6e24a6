"""The rows of a network beside those of the task."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp
from space_samples import PLACE, random_chunks, six

from bid_ros.core.errors import BundleError
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import Grid, RowMapping, grid_of

TURNS = [slice(3, 9)]


def rows(switched=(), task=PLACE, **space):
    return RowMapping(grid_of(Space(**space), task), task, TURNS, switched)


def test_what_a_space_leaves_out_is_as_in_the_task():
    assert grid_of(Space(), PLACE) == Grid(2, 16, 1, 100_000_000)
    assert grid_of(Space(observation_steps=5), PLACE).past_rows == 4
    assert grid_of(Space(rate_hz=30.0), PLACE).dt_ns == 33_333_333


def test_equal_rows_are_the_same_array():
    chunks = random_chunks(np.random.default_rng(0))
    assert rows().to_task(chunks) is chunks
    assert rows().starts and rows().guides


def test_twice_the_rate_takes_every_second_row():
    found, chunks = rows(horizon=34, past_rows=2, rate_hz=20.0), random_chunks(np.random.default_rng(0), (4, 34))
    np.testing.assert_array_equal(found.to_task(chunks), chunks[:, 0:32:2])
    assert not found.starts and not found.guides  # the rows between are not the task's


def test_a_rate_that_is_no_whole_number_of_ns_meets_the_rows_all_the_same():
    found, chunks = rows(horizon=46, past_rows=3, rate_hz=30.0), random_chunks(np.random.default_rng(0), (2, 46))
    np.testing.assert_array_equal(found.to_task(chunks), chunks[:, 0:46:3])


def test_rows_between_are_interpolated_rotations_about_one_axis():
    found, chunks = rows(horizon=9, past_rows=1, rate_hz=5.0), random_chunks(np.random.default_rng(0), (3, 9))
    at = 1 + (np.arange(16) - 1) * 0.5
    task = found.to_task(chunks)
    for sample, chunk in zip(task, chunks, strict=True):
        for column in (0, 1, 2, 9):
            np.testing.assert_allclose(sample[:, column], np.interp(at, np.arange(9), chunk[:, column]), atol=1e-12)
        wanted = Slerp(np.arange(9), Rotation.from_matrix([_frame(row) for row in chunk]))(at)
        np.testing.assert_allclose(sample[:, 3:9], six(wanted), atol=1e-9)


def test_a_switch_has_nothing_between_two_rows():
    found = rows(switched=[slice(9, 10)], horizon=9, past_rows=1, rate_hz=5.0)
    chunks = random_chunks(np.random.default_rng(0), (3, 9))
    np.testing.assert_array_equal(found.to_task(chunks)[..., 9], chunks[:, np.arange(1, 17) // 2, 9])


def test_past_rows_that_the_network_lacks_repeat_its_first():
    found = rows(horizon=15, past_rows=0)
    chunks = random_chunks(np.random.default_rng(0), (2, 15))
    np.testing.assert_array_equal(found.to_task(chunks), chunks[:, [0, *range(15)]])
    assert found.starts
    np.testing.assert_array_equal(found.to_network(np.arange(16.0)[:, None])[:, 0], np.arange(1.0, 16.0))
    np.testing.assert_array_equal(found.weights(np.arange(16.0)), np.arange(1.0, 16.0))


def test_rows_that_the_task_lacks_are_not_drawn_anywhere():
    found = rows(horizon=20, past_rows=3)
    assert not found.starts and found.guides
    wanted = np.concatenate([[0, 0], np.arange(1.0, 17.0), [0, 0]])
    np.testing.assert_array_equal(found.weights(np.arange(1.0, 17.0)), wanted)
    np.testing.assert_array_equal(found.to_network(np.arange(16.0)[:, None])[2:18, 0], np.arange(16.0))


def test_a_slower_network_starts_from_the_task_s_rows():
    found = rows(task=replace(PLACE, rate_hz=20), horizon=8, past_rows=0, rate_hz=10.0)
    assert found.starts and found.guides
    np.testing.assert_array_equal(found.to_network(np.arange(16.0)[:, None])[:, 0], np.arange(1.0, 16.0, 2.0))


@pytest.mark.parametrize(
    ("space", "match"),
    [
        ({"horizon": 5}, "the network's rows reach 0.3 s ahead; valid is the 1.4 s that the 16 rows of task 'franka"),
        ({"past_rows": 3}, "rows reach 1.2 s ahead"),
        ({"rate_hz": 20.0}, "rows reach 0.7 s ahead"),
        ({"past_rows": 16}, "past_rows is 16; valid is less than the 16 rows of horizon"),
    ],
)
def test_too_few_rows_are_refused(space, match):
    with pytest.raises(BundleError, match=match):
        rows(**space)


def _frame(row):
    return np.stack([row[3:6], row[6:9], np.cross(row[3:6], row[6:9])], axis=-1)

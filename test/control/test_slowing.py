"""Slowed motions stay on their path, whatever it is."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.servo import ChunkTrack
from bid_ros.control.slowing import Pace, rows_between
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, matrix_to_6d, quaternion_from_matrix
from bid_ros.core.task import load_task

DT = 100_000_000
DOWN = np.diag([1.0, -1.0, -1.0])


@pytest.fixture
def task(root):
    return load_task(root / "config" / "ur5_pick" / "task.yaml")


def motion(seed, rows):
    """A wild motion ``(rows, 10)``: every row jumps, turns and grips."""
    random = np.random.default_rng(seed)
    turned = matrix_from_vector(random.uniform(-1, 1, (rows, 3))) @ DOWN
    place, width = random.uniform(-1, 1, (rows, 3)), random.uniform(0, 0.08, (rows, 1))
    return np.concatenate([place, matrix_to_6d(turned), width], axis=1)


def drawn(count):
    """Numbers of rows, of the row from which on it is slower, of further steps, and a seed."""
    random = np.random.default_rng(count)
    for seed in range(count):
        rows = int(random.integers(2, 16))
        yield rows, int(random.integers(rows - 1)), int(random.integers(51)), seed


@pytest.mark.parametrize(("rows", "row", "longer", "seed"), drawn(60))
def test_every_row_is_what_a_servo_samples_of_the_motion_at_the_slower_time(task, rows, row, longer, seed):
    pace = Pace(row, rows - 1 - row, rows - 1 - row + longer)
    actions = motion(seed, rows)
    slowed = pace.slowed(actions, task, row + pace.stretched + 1)
    np.testing.assert_array_equal(slowed[: row + 1], actions[: row + 1])
    np.testing.assert_array_equal(slowed[-1], actions[-1])
    track = ChunkTrack(ActionChunk(0, DT, actions), task)
    turned = quaternion_from_matrix(matrix_from_6d(slowed[:, 3:9]))
    for number in range(row, len(slowed)):
        place = row + (number - row) * pace.scale
        target = track.sample(round(place * DT))
        np.testing.assert_allclose(slowed[number, :3], target.position, atol=1e-7)  # ns of the servo's clock
        assert abs(np.dot(turned[number], target.quaternion)) == pytest.approx(1.0, abs=1e-9)
        assert slowed[number, 9] == actions[int(place + 1e-9), 9]


def test_a_receiver_knows_the_pace_from_the_rows_and_the_scale():
    for rows, row, longer, _ in drawn(1000):
        pace = Pace(row, rows - 1 - row, rows + longer)
        assert Pace.between(rows, row + pace.stretched + 1, pace.scale) == pace


@pytest.mark.parametrize(
    "said", [(15, 15, 1.0), (15, 20, 0.0), (15, 20, -0.5), (15, 20, 1.5), (15, 20, 0.9999), (1, 1, 0.5)]
)
def test_what_no_pace_made_is_none(said):
    assert Pace.between(*said) is None


def test_what_is_remembered_holds_on_at_the_end_and_begins_later_after_past_rows(task):
    actions = motion(0, 5)
    slowed = Pace(1, 3, 6).slowed(actions, task, 12)
    np.testing.assert_array_equal(slowed[[0, 1, 3, 5, 7]], actions[[0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(slowed[8:], np.tile(actions[-1], (4, 1)))
    assert Pace(1, 3, 6).after(2) == Pace(3, 3, 6)


def test_joints_go_straight(root):
    task = load_task(root / "config" / "joints" / "franka_place" / "task.yaml")
    rows = np.arange(2 * task.action_dim, dtype=float).reshape(2, -1)
    (found,) = rows_between(rows, task, np.array([0]), np.array([0.25]))
    columns = task.columns("joints")
    np.testing.assert_allclose(found[columns], 0.75 * rows[0, columns] + 0.25 * rows[1, columns])
    alone = replace(task, action=task.action[:1])
    assert rows_between(rows[:, columns], alone, np.array([1]), np.array([0.0])).shape == (1, 7)

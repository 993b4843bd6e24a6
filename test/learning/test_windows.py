import numpy as np
import pytest

from bid_ros.learning.windows import batch_windows, held_out_episodes, window_rows


@pytest.mark.parametrize(("steps", "horizon"), [(1, 4), (2, 8), (3, 16)])
def test_windows_equal_a_plain_loop(steps: int, horizon: int) -> None:
    ends, truncated = np.array([5, 6, 26]), np.array([False, False, True])
    expected, owners = [], []
    start = 0
    for episode, end in enumerate(ends):
        for current in range(start, end):
            rows = [current - (steps - 1) + k for k in range(horizon)]
            if truncated[episode] and rows[-1] >= end:
                continue
            expected.append([min(max(row, start), end - 1) for row in rows])
            owners.append(episode)
        start = end
    rows, found = window_rows(ends, truncated, steps, horizon)
    assert rows.tolist() == expected
    assert found.tolist() == owners


def test_the_row_of_the_present_follows_the_seen_past() -> None:
    rows, _ = window_rows(np.array([10]), np.array([False]), 2, 4)
    assert rows[:, 1].tolist() == list(range(10))
    assert rows[0].tolist() == [0, 0, 1, 2]
    assert rows[9].tolist() == [8, 9, 9, 9]


def test_a_short_truncated_episode_has_no_window() -> None:
    rows, owners = window_rows(np.array([3]), np.array([True]), 2, 8)
    assert rows.shape == (0, 8)
    assert owners.shape == (0,)


def test_each_epoch_visits_every_window_once_in_its_own_order() -> None:
    picks = np.concatenate([batch_windows(10, 4, step, seed=3) for step in range(5)])
    first, second = picks[:10], picks[10:20]
    assert sorted(first) == sorted(second) == list(range(10))
    assert first.tolist() != second.tolist()


def test_batches_larger_than_the_data_and_other_seeds() -> None:
    assert np.bincount(batch_windows(3, 9, 0, seed=0)).tolist() == [3, 3, 3]
    assert batch_windows(50, 50, 0, seed=0).tolist() != batch_windows(50, 50, 0, seed=1).tolist()


def test_held_out_episodes() -> None:
    assert held_out_episodes(100, 0.05, 0).sum() == 5
    assert held_out_episodes(3, 0.05, 0).sum() == 1
    assert held_out_episodes(2, 0.5, 0).sum() == 1
    assert held_out_episodes(1, 0.5, 0).sum() == 0
    assert held_out_episodes(100, 0.0, 0).sum() == 0
    assert (held_out_episodes(100, 0.2, 0) != held_out_episodes(100, 0.2, 1)).any()

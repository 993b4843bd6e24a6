from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.learning.windows import (
    action_normaliser,
    action_spread,
    batch_windows,
    goal_columns,
    goal_size,
    held_out_episodes,
    observation_normalisers,
    per_rad,
    row_goals,
    window_rows,
)
from bid_ros.recording.dataset import Dataset


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


def with_widths(dataset: Dataset, first: int, *runs: tuple[int, float]) -> Dataset:
    """The data set with widths from row ``first`` on, given as (rows, width), and x counting those rows in cm."""
    actions = dataset.actions.copy()
    widths = np.concatenate([np.full(rows, width) for rows, width in runs])
    actions[first : first + len(widths), 3] = widths
    actions[first : first + len(widths), 0] = np.arange(len(widths)) / 100
    return replace(dataset, actions=actions)


def test_goal_is_where_the_gripper_is_next_told_to_close_or_open(task: Task, dataset: Dataset) -> None:
    picking = with_widths(dataset, 0, (4, 0.08), (5, 0.0), (3, 0.08))
    goals = row_goals(picking, task)
    assert goals is not None
    assert goals.shape == (dataset.rows, 3)
    # Closes in row 4 and opens in row 9; after that, nothing is ahead.
    assert (100 * goals[:12, 0]).round().astype(int).tolist() == [4] * 5 + [9] * 7


def test_a_demonstration_that_only_opens_has_one_goal_where_it_does(task: Task, dataset: Dataset) -> None:
    goals = row_goals(dataset, task)
    assert goals is not None
    for start, end in zip(dataset.episode_starts, dataset.episode_ends, strict=True):
        width = dataset.actions[start:end, 3]
        opening = start + int(np.flatnonzero(np.diff(width) > 0.03)[-1]) + 1
        np.testing.assert_array_equal(goals[start:end], np.repeat(dataset.actions[[opening], :3], end - start, axis=0))


def test_both_pieces_of_a_demonstration_that_a_gap_cut_have_its_goal(task: Task, dataset: Dataset) -> None:
    second = with_widths(dataset, 12, (9, 0.02), (3, 0.08))
    actions = second.actions.copy()
    actions[:12, 3] = 0.02
    seeds = dataset.seeds.copy()
    seeds[1] = seeds[0]
    labels = (dataset.labels[0], dataset.labels[0], *dataset.labels[2:])
    cut = replace(second, actions=actions, seeds=seeds, labels=labels, truncated=np.arange(6) == 0)
    assert cut.demonstrations.tolist() == [0, 0, 1, 2, 3, 4]
    goals = row_goals(cut, task)
    assert goals is not None
    assert set(goals[:24, 0]) == {0.09}
    apart = replace(cut, truncated=np.zeros(6, dtype=bool))
    assert apart.demonstrations.tolist() == [0, 1, 2, 3, 4, 5]
    goals = row_goals(apart, task)
    assert goals is not None
    assert goals[0, 0] != 0.09


def test_a_demonstration_that_never_switches_ends_at_its_last_position(task: Task, dataset: Dataset) -> None:
    goals = row_goals(with_widths(dataset, 12, (12, 0.02)), task)
    assert goals is not None
    assert set(goals[12:24, 0]) == {0.11}


def test_the_goal_of_joints_is_where_the_tool_is_seen_then(task: Task, dataset: Dataset) -> None:
    joints = replace(task, action=(replace(task.action[0], kind="joints"), *task.action[1:]))
    assert goal_columns(joints) is None and goal_size(joints) == 3
    name = next(item.name for item in joints.vectors if item.kind == "position")
    goals, rows = row_goals(dataset, joints), dataset.observations[name]
    assert goals is not None
    assert all(any(np.array_equal(goal, row) for row in rows) for goal in goals[:5])
    blind = replace(joints, observation=tuple(item for item in joints.observation if item.kind != "position"))
    assert goal_size(blind) == 0


def test_a_task_without_images_has_no_goal(make_task, make_dataset) -> None:
    task = make_task(images=False)
    assert goal_columns(task) is None
    assert row_goals(make_dataset(task), task) is None


def test_data_spans_the_unit_range(task: Task, dataset: Dataset) -> None:
    values = action_normaliser(dataset.actions[:, None], task, each_row=False).normalise(dataset.actions)
    np.testing.assert_allclose([values.min(axis=0), values.max(axis=0)], [[-1] * 4, [1] * 4], atol=1e-6)
    assert list(observation_normalisers(dataset, task)) == ["tool_position"]


def test_a_constant_value_gets_a_range_so_that_noise_stays_small(task: Task, dataset: Dataset) -> None:
    actions = dataset.actions.copy()
    actions[:, 1] = 0.5 + np.random.default_rng(0).uniform(-1e-6, 1e-6, len(actions))
    changed = replace(dataset, actions=actions)
    normaliser = action_normaliser(changed.actions[:, None], task, each_row=False)
    np.testing.assert_allclose(normaliser.maximum[1] - normaliser.minimum[1], 0.02)
    assert np.abs(normaliser.normalise(actions)[:, 1]).max() < 1e-3
    np.testing.assert_allclose(action_spread(changed, task)[1], 0.002)


def test_spread_is_the_standard_deviation(task: Task, dataset: Dataset) -> None:
    np.testing.assert_allclose(action_spread(dataset, task), dataset.actions.std(axis=0))


def test_each_row_of_a_window_may_have_its_own_range(task: Task, dataset: Dataset) -> None:
    windows = np.stack([dataset.actions[start : start + 3] for start in range(4)])
    normaliser = action_normaliser(windows, task, each_row=True)
    assert normaliser.minimum.shape == (3, 4)
    values = normaliser.normalise(windows)
    np.testing.assert_allclose(np.abs(values).max(), 1.0, atol=1e-6)
    np.testing.assert_allclose(normaliser.denormalise(values), windows, atol=1e-6)


def test_a_tool_that_no_demonstration_turns_keeps_the_entries_of_its_rotation(task: Task, dataset: Dataset) -> None:
    rotation, joints = Feature("tool_rotation", "rotation_6d", frame="base"), Feature("joints", "joints", shape=(7,))
    turning = replace(task, observation=(*task.observation, rotation, joints), data=None)
    down = np.tile([1.0, 0, 0, 0, -1, 0], (dataset.rows, 1))
    posture = np.tile(np.linspace(-2, 2, 7), (dataset.rows, 1)).astype(np.float32)
    seen = {**dataset.observations, "tool_rotation": down.astype(np.float32), "joints": posture}
    made = observation_normalisers(replace(dataset, observations=seen), turning)
    turned = down[0] + np.array([0, 0.1, 0, -0.1, 0, 0])
    change = made["tool_rotation"].normalise(turned) - made["tool_rotation"].normalise(down[0])
    np.testing.assert_allclose(change, turned - down[0], atol=1e-6)
    np.testing.assert_allclose(per_rad(made["tool_rotation"], rotation), np.ones(6), atol=1e-6)
    np.testing.assert_allclose(per_rad(made["joints"], joints), np.full(7, 4.0), atol=1e-6)
    assert not per_rad(made["tool_position"], task.vectors[0]).any()

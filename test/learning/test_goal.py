from dataclasses import replace

import numpy as np

from bid_ros.core.task import Task
from bid_ros.learning.windows import goal_columns, goal_size, row_goals
from bid_ros.recording.dataset import Dataset


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

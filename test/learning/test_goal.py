from dataclasses import replace

import numpy as np

from bid_ros.learning.goal import episode_goals, goal_columns
from bid_ros.recording.dataset import Dataset
from bid_ros.task import Task


def test_goal_is_where_the_gripper_last_opens(task: Task, dataset: Dataset) -> None:
    actions = dataset.actions.copy()
    # Episode 0 of 12 rows: opens at row 2, closes at 5, opens for good at 9.
    actions[:12, 3] = [0.02] * 2 + [0.08] * 3 + [0.02] * 4 + [0.08] * 3
    actions[:12, 0] = np.arange(12) / 100
    goals = episode_goals(replace(dataset, actions=actions), task)
    assert goals is not None
    assert goals.shape == (6, 3)
    assert goals[0, 0] == 0.09


def test_both_pieces_of_a_demonstration_that_a_gap_cut_have_its_goal(task: Task, dataset: Dataset) -> None:
    actions = dataset.actions.copy()
    actions[:12, 3] = 0.02
    actions[12:24, 3] = [0.02] * 9 + [0.08] * 3
    actions[12:24, 0] = np.arange(12) / 100
    seeds = dataset.seeds.copy()
    seeds[1] = seeds[0]
    labels = (dataset.labels[0], dataset.labels[0], *dataset.labels[2:])
    cut = replace(dataset, actions=actions, seeds=seeds, labels=labels, truncated=np.arange(6) == 0)
    assert cut.demonstrations.tolist() == [0, 0, 1, 2, 3, 4]
    goals = episode_goals(cut, task)
    assert goals is not None
    assert goals[0, 0] == goals[1, 0] == 0.09
    assert replace(cut, truncated=np.zeros(6, dtype=bool)).demonstrations.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_episode_that_never_opens_ends_at_its_last_position(task: Task, dataset: Dataset) -> None:
    actions = dataset.actions.copy()
    actions[12:24, 3] = 0.02
    actions[12:24, 0] = np.arange(12) / 100
    goals = episode_goals(replace(dataset, actions=actions), task)
    assert goals is not None
    assert goals[1, 0] == 0.11


def test_a_task_without_images_has_no_goal(make_task, make_dataset) -> None:
    task = make_task(images=False)
    assert goal_columns(task) is None
    assert episode_goals(make_dataset(task), task) is None

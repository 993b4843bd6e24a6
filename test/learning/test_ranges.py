from dataclasses import replace

import numpy as np

from bid_ros.core.task import Feature, Task
from bid_ros.learning.windows import action_normaliser, action_spread, observation_normalisers, per_rad
from bid_ros.recording.dataset import Dataset


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

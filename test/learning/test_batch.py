from dataclasses import replace

import numpy as np
import pytest
import torch

from bid_ros.learning import AugmentConfig
from bid_ros.learning.batch import TrainingData


def test_distances_are_shifted_and_not_recoloured(make_task, make_dataset) -> None:
    task, dataset = make_task(), make_dataset(make_task())
    front = replace(task.cameras[0], shape=(*task.cameras[0].shape[:2], 1), depth=(0.5, 1.5))
    task = replace(task, observation=(front, *task.vectors))
    values = np.full((dataset.rows, *front.shape), 1250, np.uint16)
    dataset = replace(dataset, observations={**dataset.observations, "front": values}, task_signature=task.signature())
    found = TrainingData(dataset, task).batch(np.array([0, 3]), torch.device("cpu"), AugmentConfig(), 4).images["front"]
    assert found.dtype == torch.float32 and found.shape[-1] == 1 and (found == 0.25).all()


@pytest.mark.parametrize("reference", ["base", "tool"])
def test_a_rolled_state_is_where_the_actions_led_and_its_chunk_begins_there(task, dataset, reference) -> None:
    data, device = TrainingData(dataset, task, reference, longest_delay=3), torch.device("cpu")
    windows, delays = np.array([4, 4, 4, 11]), np.array([0, 1, 3, 3])
    batch = data.batch(windows, device, delays=delays)
    seen, acted, last = dataset.observations["tool_position"], dataset.actions, 11
    states = data.observation["tool_position"].denormalise(batch.vectors["tool_position"].numpy())
    # Row 4 is the newest one, and row 3 the one before; a step after an action the tool is where it led.
    paths = ([seen[3], seen[4]], [seen[4], acted[4, :3]], [acted[5, :3], acted[6, :3]], [acted[last, :3]] * 2)
    np.testing.assert_allclose(states, np.array(paths), atol=1e-6)
    chunks = data.action.denormalise(batch.actions.numpy())
    for chunk, window, delay, path in zip(chunks, windows, delays, paths, strict=True):
        rows = np.clip(np.arange(8) + window - 1 + delay, 0, last)  # of the first episode
        anchor = np.append(path[1], 0.0) if reference == "tool" else 0.0
        np.testing.assert_allclose(chunk, acted[rows] - anchor, atol=1e-6)
    if reference == "tool":
        goals = data.goal.denormalise(batch.goals.numpy()) + [path[1] for path in paths]
        np.testing.assert_allclose(goals, [acted[9, :3]] * 4, atol=1e-6)
    for images in (batch.images["front"], data.batch(windows, device).images["front"]):
        torch.testing.assert_close(images[0], images[2])  # nobody knows what the cameras will see


def test_no_delay_is_what_it_was_before(task, dataset) -> None:
    windows, device, augment = np.arange(9), torch.device("cpu"), AugmentConfig(state=0.02, history=0.5)
    before = TrainingData(dataset, task).batch(windows, device, augment, 5)
    data = TrainingData(dataset, task, longest_delay=3)
    after = data.batch(windows, device, augment, 5, np.zeros(9, dtype=np.int64))
    assert torch.equal(before.actions, after.actions) and torch.equal(before.goals, after.goals)
    assert torch.equal(before.vectors["tool_position"], after.vectors["tool_position"])

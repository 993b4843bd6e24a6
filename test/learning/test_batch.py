from dataclasses import replace

import numpy as np
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

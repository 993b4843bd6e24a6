"""What the training of every family of policies repeats: its state, its learning rate, its validation."""

import copy
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.learning.batch import TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.descent import MOST_KEPT, Descent, rate_at
from bid_ros.learning.windows import batch_windows, spread_windows

VALIDATION_SEED: Final = 20_000_000  # away from the seeds of training steps


class Trainer(Descent, ABC):
    """Networks, their moving average and the optimiser.

    Seed and step number determine everything random of each step. So a run that is resumed from :meth:`state` ends with
    the weights of a run that was never stopped.

    Args:
        networks: of the family, with their first weights.
        data: the windows.
        training, validation: indices of the windows of each split, the second possibly empty.
        config: the run's configuration.
        device: where to compute.

    Attributes:
        networks, averaged: in training, and their moving average.
    """

    networks: Any
    averaged: Any

    def __init__(
        self,
        networks: nn.Module,
        data: TrainingData,
        training: NDArray[np.int64],
        validation: NDArray[np.int64],
        config: TrainConfig,
        device: torch.device,
    ) -> None:
        self.networks = networks.to(device)
        self.averaged = copy.deepcopy(self.networks).requires_grad_(False)
        self._data, self._config, self._device = data, config, device
        self._training, self._validation = training, spread_windows(validation)
        optimiser = torch.optim.AdamW(self._groups(), lr=config.learning_rate)
        super().__init__(self.networks, self.averaged, optimiser, config.ema_power, MOST_KEPT)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        return rate_at(self.step, self._config.learning_rate, self._config.warm_up, self._config.steps)

    def prepare(self) -> dict[str, float]:
        """Do what comes before the first step, by default nothing; return what is to be logged of it."""
        return {}

    @abstractmethod
    def advance(self) -> dict[str, float]:
        """Take one step and return its losses, ``loss`` among them."""

    def validate(self) -> dict[str, float]:
        """Return losses of the averaged weights on held-out windows, with the same windows and noise every time.

        Empty if nothing is held out.
        """
        sums: dict[str, float] = {}
        for start in range(0, len(self._validation), self._config.batch):
            windows = self._validation[start : start + self._config.batch]
            with torch.no_grad():
                values = self._judge(windows, VALIDATION_SEED + start)
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value * len(windows) / len(self._validation)
        return sums

    def _next_windows(self) -> NDArray[np.int64]:
        """Return the windows of the next step."""
        return self._training[batch_windows(len(self._training), self._config.batch, self.step, self._config.seed)]

    def _groups(self) -> list[dict[str, Any]]:
        """Return the trained weights and the decay of each group: by default all, with one decay."""
        return [{"params": list(self.networks.parameters()), "weight_decay": self._config.weight_decay}]

    @abstractmethod
    def _judge(self, windows: NDArray[np.int64], seed: int) -> dict[str, float]:
        """Return the losses of the averaged weights on held-out windows."""

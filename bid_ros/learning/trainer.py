"""One optimiser step of diffusion training, and validation. It holds the state that seed and step do not determine."""

import copy
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch, TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.descent import MOST_KEPT, Descent, rate_at, seed_of
from bid_ros.learning.immiscible import assign_noise
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.windows import batch_windows, spread_windows
from bid_ros.policy.diffusion.sampler import noise_levels

VALIDATION_SEED: Final = 20_000_000  # away from the seeds of training steps


class Trainer(Descent):
    """Networks, their moving average and the optimiser.

    Seed and step number determine batch, noise and augmentation of each step. So a run that is resumed from
    :meth:`state` ends with the weights of a run that was never stopped.

    Args:
        task: what is observed and commanded.
        data: the windows.
        training, validation: indices of the windows of each split, the second possibly empty.
        config: the run's configuration.
        device: where to compute.
    """

    def __init__(
        self,
        task: Task,
        data: TrainingData,
        training: NDArray[np.int64],
        validation: NDArray[np.int64],
        config: TrainConfig,
        device: torch.device,
    ) -> None:
        torch.manual_seed(config.seed)
        self.networks = PolicyNetworks(task, config.network).to(device)
        self.averaged = copy.deepcopy(self.networks).requires_grad_(False)
        self._data, self._config, self._device = data, config, device
        self._training = training
        self._validation = spread_windows(validation)
        optimiser = torch.optim.AdamW(
            self.networks.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        super().__init__(self.networks, self.averaged, optimiser, config.ema_power, MOST_KEPT)
        signal, noise = (torch.from_numpy(part).to(device, torch.float32) for part in noise_levels(config.diffusion))
        self._signal, self._noise = signal[:, None, None], noise[:, None, None]
        self._goal_scale = None if data.goal is None else 500 * (data.goal.maximum - data.goal.minimum)  # to mm

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        return rate_at(self.step, self._config.learning_rate, self._config.warm_up, self._config.steps)

    def prepare(self) -> dict[str, float]:
        """Do what comes before the first step: nothing."""
        return {}

    def advance(self) -> dict[str, float]:
        """Take one step and return its ``loss`` (denoising) and, where there is a goal, ``goal_loss``."""
        windows = self._training[batch_windows(len(self._training), self._config.batch, self.step, self._config.seed)]
        seed = seed_of(self._config.seed, self.step)
        losses = self._losses(self.networks, self._data.batch(windows, self._device, self._config.augment, seed), seed)
        total = losses["loss"]
        if "goal_loss" in losses:
            total = total + self._config.goal_weight * losses["goal_loss"]
        self.descend(total, self.learning_rate)
        return {name: loss.item() for name, loss in losses.items()}

    def validate(self) -> dict[str, float]:
        """Return losses of the averaged weights on held-out windows, with the same windows and noise every time.

        ``val_loss`` is the denoising loss, ``val_goal_mm`` the mean distance of the predicted goal from the true one,
        mm. Empty if nothing is held out.
        """
        sums: dict[str, float] = {}
        for start in range(0, len(self._validation), self._config.batch):
            windows = self._validation[start : start + self._config.batch]
            batch = self._data.batch(windows, self._device)
            with torch.no_grad():
                values = {"val_loss": self._losses(self.averaged, batch, VALIDATION_SEED + start)["loss"].item()}
                if self.averaged.goal is not None and batch.goals is not None:
                    values["val_goal_mm"] = self._goal_error(batch, batch.goals)
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value * len(windows) / len(self._validation)
        return sums

    def _losses(self, networks: PolicyNetworks, batch: Batch, seed: int) -> dict[str, torch.Tensor]:
        """Mix actions and noise at random levels, and predict as configured.

        Diffusion: Ho et al., "DDPM", NeurIPS 2020, Eq. 4. Flow: Lipman et al., "Flow Matching for Generative Modeling",
        ICLR 2023, Eq. 22 with sigma_min = 0; the velocity of that path is clean chunk less noise (Eq. 23).
        """
        generator = torch.Generator(self._device).manual_seed(seed)
        count, settings = len(batch.actions), self._config.diffusion
        level = torch.randint(settings.train_steps, (count,), generator=generator, device=self._device)
        noise = torch.randn(batch.actions.shape, generator=generator, device=self._device)
        if self._config.assign_noise:
            noise = assign_noise(batch.actions, noise)
        noisy = self._signal[level] * batch.actions + self._noise[level] * noise
        wanted = {"epsilon": noise, "sample": batch.actions, "velocity": batch.actions - noise}
        return networks.losses(batch, noisy, level, wanted[settings.prediction])

    def _goal_error(self, batch: Batch, goals: torch.Tensor) -> float:
        guess = self.averaged.goal(self.averaged.encoder.features(batch.images, batch.vectors))
        scale = torch.as_tensor(self._goal_scale, dtype=guess.dtype, device=guess.device)
        return float(((guess - goals) * scale).norm(dim=1).mean())

"""One optimiser step of diffusion training, and validation. It holds the state that seed and step do not determine."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch, TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.descent import seed_of
from bid_ros.learning.immiscible import assign_noise
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.trainer import Trainer
from bid_ros.policy.diffusion.sampler import noise_levels


class DiffusionTrainer(Trainer):
    """Training of a policy that denoises. Seed and step number determine batch, noise and augmentation of each step.

    Args:
        task: what is observed and commanded.
        data, training, validation, config, device: as of :class:`Trainer`.
    """

    networks: PolicyNetworks
    averaged: PolicyNetworks

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
        super().__init__(PolicyNetworks(task, config.network), data, training, validation, config, device)
        signal, noise = (torch.from_numpy(part).to(device, torch.float32) for part in noise_levels(config.diffusion))
        self._signal, self._noise = signal[:, None, None], noise[:, None, None]
        self._goal_scale = None if data.goal is None else 500 * (data.goal.maximum - data.goal.minimum)  # to mm

    def advance(self) -> dict[str, float]:
        """Take one step and return its ``loss`` (denoising) and, where there is a goal, ``goal_loss``."""
        windows, seed = self._next_windows(), seed_of(self._config.seed, self.step)
        losses = self._losses(self.networks, self._data.batch(windows, self._device, self._config.augment, seed), seed)
        total = losses["loss"]
        if "goal_loss" in losses:
            total = total + self._config.goal_weight * losses["goal_loss"]
        self.descend(total, self.learning_rate)
        return {name: loss.item() for name, loss in losses.items()}

    def _judge(self, windows: NDArray[np.int64], seed: int) -> dict[str, float]:
        """Return ``val_loss``, the denoising loss, and ``val_goal_mm``, the mean distance of the predicted goal from
        the true one, mm.
        """
        batch = self._data.batch(windows, self._device)
        values = {"val_loss": self._losses(self.averaged, batch, seed)["loss"].item()}
        if self.averaged.goal is not None and batch.goals is not None:
            values["val_goal_mm"] = self._goal_error(self.averaged.goal, batch, batch.goals)
        return values

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

    def _goal_error(self, head: nn.Module, batch: Batch, goals: torch.Tensor) -> float:
        guess = head(self.averaged.encoder.features(batch.images, batch.vectors))
        scale = torch.as_tensor(self._goal_scale, dtype=guess.dtype, device=guess.device)
        return float(((guess - goals) * scale).norm(dim=1).mean())

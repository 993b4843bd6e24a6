"""Training of ACT: a chunk's mean absolute error, and how much its style may tell."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.act.network import ActNetworks
from bid_ros.learning.batch import Batch
from bid_ros.learning.trainer import Trainer, goal_error, seed_of


class ActTrainer(Trainer):
    """Training of ACT. Seed and step number determine batch, style and augmentation of each step."""

    networks: ActNetworks
    averaged: ActNetworks

    def _built(self, task: Task) -> nn.Module:
        return ActNetworks(task, self._config.network, self._config.act)

    def advance(self) -> dict[str, float]:
        """Take one step.

        Returns:
            ``loss``, the mean absolute error in normalised units; ``style_loss``, the divergence of the style from a
            standard normal one; ``goal_loss`` where there is a goal.
        """
        windows, seed = self._next_windows(), seed_of(self._config.seed, self.step)
        batch = self._data.batch(windows, self._device, self._config.augment, seed)
        networks, ahead = self.networks, batch.actions[:, -self.networks.rows :]
        tokens = networks.tokens(networks.points(batch.images), batch.vectors)
        mean, logarithm = networks.style(tokens[-1], ahead)
        generator = torch.Generator(self._device).manual_seed(seed)
        noise = torch.randn(mean.shape, generator=generator, device=self._device)
        losses = {
            "loss": nn.functional.l1_loss(networks(tokens, mean + (logarithm / 2).exp() * noise), ahead),
            "style_loss": -0.5 * (1 + logarithm - mean.square() - logarithm.exp()).sum(dim=1).mean(),
        }
        total = losses["loss"] + self._config.act.style_weight * losses["style_loss"]
        if networks.goal is not None and batch.goals is not None:
            losses["goal_loss"] = nn.functional.mse_loss(networks.goal(torch.cat(tokens, dim=1)), batch.goals)
            total = total + self._config.goal_weight * losses["goal_loss"]
        self.descend(total, self.learning_rate)
        return {name: loss.item() for name, loss in losses.items()}

    def _judge(self, windows: NDArray[np.int64], seed: int) -> dict[str, float]:
        """Return ``val_loss``, the mean absolute error without a style, as in use, and ``val_goal_mm``."""
        batch, networks = self._data.batch(windows, self._device), self.averaged
        tokens = networks.tokens(networks.points(batch.images), batch.vectors)
        values = {"val_loss": nn.functional.l1_loss(networks(tokens), batch.actions[:, -networks.rows :]).item()}
        return values | self._goal_mm(batch, tokens)

    def _goal_mm(self, batch: Batch, tokens: list[torch.Tensor]) -> dict[str, float]:
        goal: Any = self._data.goal
        if self.averaged.goal is None or batch.goals is None or goal is None:
            return {}
        return {"val_goal_mm": goal_error(self.averaged.goal(torch.cat(tokens, dim=1)), batch.goals, goal)}

"""Training step by step: what every family of policies repeats, and the training of a policy that denoises."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch, TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.windows import batch_windows, spread_windows
from bid_ros.policy.diffusion.sampler import noise_levels
from bid_ros.policy.normalise import LinearNormaliser

MOST_KEPT: Final = 0.9999  # of the averaged weights' past
DELAY_STREAM: Final = 2  # of a step's random numbers; the others are its batch's
VALIDATION_SEED: Final = 20_000_000  # away from the seeds of training steps


class Descent:
    """A network in training, its moving average and its optimiser.

    Args:
        network: in training.
        averaged: a copy of it that takes the averages.
        optimiser: of the network's weights.
        ema_power: the averaged weights keep ``1 - (1 + step) ** -ema_power`` of their past.
        most_kept: largest share of their past that they keep.

    Attributes:
        step: number of steps taken.
    """

    def __init__(
        self,
        network: nn.Module,
        averaged: nn.Module,
        optimiser: torch.optim.Optimizer,
        ema_power: float,
        most_kept: float,
    ) -> None:
        self.step = 0
        self._optimiser, self._power, self._most_kept = optimiser, ema_power, most_kept
        self._parts: dict[str, Any] = {"networks": network, "averaged": averaged, "optimiser": optimiser}

    def descend(self, loss: torch.Tensor, learning_rate: float) -> None:
        """Take one step down the gradient of a loss, and average as in Diffusion Policy's code."""
        network, averaged = self._parts["networks"], self._parts["averaged"]
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        self._optimiser.step()
        keep = min(1 - (1 + self.step) ** -self._power, self._most_kept)
        torch._foreach_lerp_(list(averaged.parameters()), list(network.parameters()), 1 - keep)
        self.step += 1

    def state(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {"step": self.step, **{name: part.state_dict() for name, part in self._parts.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`. Raises KeyError, RuntimeError or ValueError if the networks differ."""
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.step = int(state["step"])


def rate_at(step: int, peak: float, warm_up: float, steps: int) -> float:
    """Return the learning rate of a step: it rises linearly over ``warm_up``, a share of ``steps``, then falls along a
    cosine to 0.
    """
    rising = round(warm_up * steps)
    if step < rising:
        return peak * (step + 1) / rising
    return peak * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising))) / 2


def seed_of(seed: int, step: int) -> int:
    """Return the seed of everything random in a step: a resumed run draws what an uninterrupted one would."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1)[0])


def assign_noise(actions: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Return the rows of ``noise`` in the order that makes the sum of their distances to ``actions`` smallest.

    Without it, every action is trained with every noise. Then noise says little about the chunk, and the samples of a
    decision fall into the mode that most demonstrations took. The assignment is the optimal one (Hungarian method).
    For 256 chunks it takes a few milliseconds.

    Args:
        actions: ``(B, H, D)``, normalised.
        noise: ``(B, H, D)``, standard normal. Its rows stay independent of each other and standard normal as a set.
    """
    distances = torch.cdist(actions.flatten(1), noise.flatten(1))
    _, order = linear_sum_assignment(distances.cpu().numpy())
    return noise[torch.from_numpy(order).to(noise.device)]


def goal_error(guess: torch.Tensor, goals: torch.Tensor, ranges: LinearNormaliser) -> float:
    """Return the mean distance of guessed goals ``(B, 3)`` from the true ones, both normalised by ``ranges``, in mm."""
    scale = torch.as_tensor(500 * (ranges.maximum - ranges.minimum), dtype=guess.dtype, device=guess.device)
    return float(((guess - goals) * scale).norm(dim=1).mean())


class Trainer(Descent, ABC):
    """Networks, their moving average and the optimiser.

    Seed and step number determine everything random of each step. So a run that is resumed from :meth:`state` ends with
    the weights of a run that was never stopped.

    Args:
        task: what is observed and commanded.
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
        task: Task,
        data: TrainingData,
        training: NDArray[np.int64],
        validation: NDArray[np.int64],
        config: TrainConfig,
        device: torch.device,
    ) -> None:
        torch.manual_seed(config.seed)
        self._data, self._config, self._device = data, config, device
        self._training, self._validation = training, spread_windows(validation)
        self.networks = self._built(task).to(device)
        self.averaged = copy.deepcopy(self.networks).requires_grad_(False).eval()
        optimiser = torch.optim.AdamW(self._groups(), lr=config.learning_rate)
        super().__init__(self.networks, self.averaged, optimiser, config.ema_power, MOST_KEPT)

    @abstractmethod
    def _built(self, task: Task) -> nn.Module:
        """Return the networks of the family, with their first weights; prepare what depends on the arguments."""

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


class DiffusionTrainer(Trainer):
    """Training of a policy that denoises. Seed and step number determine batch, noise and augmentation of each step."""

    networks: PolicyNetworks
    averaged: PolicyNetworks

    def _built(self, task: Task) -> nn.Module:
        levels = noise_levels(self._config.diffusion)
        signal, noise = (torch.from_numpy(part).to(self._device, torch.float32) for part in levels)
        self._signal, self._noise, self._past = signal[:, None, None], noise[:, None, None], task.observation_steps - 1
        return PolicyNetworks(task, self._config.network, self._config.diffusion.clean_step)

    def advance(self) -> dict[str, float]:
        """Take one step and return its ``loss`` (denoising) and, where there is a goal, ``goal_loss``."""
        windows, seed = self._next_windows(), seed_of(self._config.seed, self.step)
        longest, rolls = self._config.diffusion.simulated_delay, self._config.diffusion.roll_forward
        delays = np.random.default_rng([seed, DELAY_STREAM]).integers(longest + 1, size=len(windows))
        batch = self._data.batch(windows, self._device, self._config.augment, seed, delays if rolls else None)
        losses = self._losses(self.networks, batch, seed, delays if longest and not rolls else None)
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
        goal = self._data.goal
        if self.averaged.goal is not None and batch.goals is not None and goal is not None:
            guess = self.averaged.goal(self.averaged.encoder.features(batch.images, batch.vectors))
            values["val_goal_mm"] = goal_error(guess, batch.goals, goal)
        return values

    def _losses(
        self, networks: PolicyNetworks, batch: Batch, seed: int, delays: NDArray[np.int64] | None = None
    ) -> dict[str, torch.Tensor]:
        """Mix actions and noise at random levels, and predict as configured.

        Diffusion: Ho et al., "DDPM", NeurIPS 2020, Eq. 4. Flow: Lipman et al., "Flow Matching for Generative Modeling",
        ICLR 2023, Eq. 22 with sigma_min = 0; the velocity of that path is clean chunk less noise (Eq. 23).

        ``delays`` ``(B,)``, steps: a delay of at least 1 gives the rows of the past and so many more clean (Black et
        al., 2025, see :mod:`bid_ros.policy.committed`). None: no row.
        """
        generator = torch.Generator(self._device).manual_seed(seed)
        count, settings = len(batch.actions), self._config.diffusion
        level = torch.randint(settings.train_steps, (count,), generator=generator, device=self._device)
        noise = torch.randn(batch.actions.shape, generator=generator, device=self._device)
        if self._config.assign_noise:
            noise = assign_noise(batch.actions, noise)
        noisy = self._signal[level] * batch.actions + self._noise[level] * noise
        wanted = {"epsilon": noise, "sample": batch.actions, "velocity": batch.actions - noise}
        rows = None
        if delays is not None:
            rows = torch.from_numpy(np.where(delays > 0, self._past + delays, 0)).to(self._device)
        return networks.losses(batch, noisy, level, wanted[settings.prediction], rows)

"""Training of VQ-BeT: first the codes, then the transformer that predicts them."""

import copy
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch, TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.descent import MOST_KEPT, Descent, rate_at, seed_of
from bid_ros.learning.vqbet.losses import losses
from bid_ros.learning.vqbet.policy import VqBetNetworks
from bid_ros.learning.windows import batch_windows, spread_windows

CODER_SEED: Final = 30_000_000  # away from the seeds of training steps and of the validation
CODER_BATCH: Final = 512
SMALLEST_SPREAD: Final = 1e-3  # of chunks, normalised units
VALIDATION_SEED: Final = 20_000_000


class VqBetTrainer(Descent):
    """Networks, their moving average and the optimiser.

    Seed and step number determine batch, dropout and drawn codes of each step. So a run that is resumed from
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
        self.networks = VqBetNetworks(task, config.network, config.vqbet).to(device)
        self.networks.net.coder.requires_grad_(False)
        self.averaged = copy.deepcopy(self.networks).requires_grad_(False).eval()
        self._data, self._config, self._device, self._training = data, config, device, training
        self._steps, self._validation = task.observation_steps, spread_windows(validation)
        optimiser = torch.optim.AdamW(_groups(self.networks, config.weight_decay), lr=config.learning_rate)
        super().__init__(self.networks, self.averaged, optimiser, config.ema_power, MOST_KEPT)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        return rate_at(self.step, self._config.learning_rate, self._config.warm_up, self._config.steps)

    def prepare(self) -> dict[str, float]:
        """Train the coder on all chunks of the data.

        Returns:
            ``coder_error``, the mean absolute error in units of the chunks' spread, and ``coder_pairs``, how many pairs
            of codes are used; both of the training chunks.
        """
        config, coder = self._config.vqbet, self.networks.net.coder
        generator = torch.Generator().manual_seed(seed_of(self._config.seed, CODER_SEED))
        chunks = self._data.chunks(self._training)[:, -1]
        coder.scale.copy_(chunks.std(dim=0).clamp_min(SMALLEST_SPREAD))
        coder.requires_grad_(True)
        optimiser = torch.optim.AdamW(coder.parameters(), lr=config.coder_learning_rate)
        for step in range(config.coder_steps):
            batch = chunks[batch_windows(len(chunks), CODER_BATCH, step, self._config.seed)].to(self._device)
            if step == 0:
                coder.quantiser.start(coder.latent(batch), generator)
            optimiser.zero_grad(set_to_none=True)
            loss = coder.losses(batch)["coder_loss"]
            loss.backward()
            optimiser.param_groups[0]["lr"] = rate_at(step, config.coder_learning_rate, 0.05, config.coder_steps)
            optimiser.step()
            coder.quantiser.follow(coder.latent(batch), generator)
        optimiser.zero_grad(set_to_none=True)  # what is left would count in the norm of later gradients
        coder.requires_grad_(False)
        self.averaged.load_state_dict(self.networks.state_dict())
        return self._coder_report(chunks)

    def _coder_report(self, chunks: torch.Tensor) -> dict[str, float]:
        coder = self.networks.net.coder
        with torch.no_grad():
            codes = coder.encode(chunks.to(self._device))
            error = (coder.decode(codes) - chunks.to(self._device)) / coder.scale
        return {"coder_error": error.abs().mean().item(), "coder_pairs": float(len(codes.unique(dim=0)))}

    def advance(self) -> dict[str, float]:
        """Take one step and return its losses, see :func:`bid_ros.learning.vqbet.losses.losses`."""
        windows = self._training[batch_windows(len(self._training), self._config.batch, self.step, self._config.seed)]
        seed = seed_of(self._config.seed, self.step)
        torch.manual_seed(seed)  # of the dropout
        self.networks.train()
        batch = self._data.batch(windows, self._device, self._config.augment, seed)
        counted = torch.ones(len(windows), self._steps, dtype=torch.bool)
        # What was done before is not known from the newest observation alone.
        counted[torch.from_numpy(batch.forgotten), :-1] = False
        found = self._losses(self.networks, batch, self._data.chunks(windows), counted, seed)
        self.descend(found["loss"], self.learning_rate)
        return {name: value.item() for name, value in found.items()}

    def validate(self) -> dict[str, float]:
        """Return losses of the averaged weights on held-out windows, of their newest observation only.

        ``val_loss``, ``val_action_error`` and ``val_code_share``. Empty if nothing is held out.
        """
        sums: dict[str, float] = {}
        for start in range(0, len(self._validation), self._config.batch):
            windows = self._validation[start : start + self._config.batch]
            counted = torch.zeros(len(windows), self._steps, dtype=torch.bool)
            counted[:, -1] = True
            with torch.no_grad():
                batch = self._data.batch(windows, self._device)
                chunks = self._data.chunks(windows)
                found = self._losses(self.averaged, batch, chunks, counted, VALIDATION_SEED + start)
            for name in ("loss", "action_error", "code_share"):
                share = found[name].item() * len(windows) / len(self._validation)
                sums[f"val_{name}"] = sums.get(f"val_{name}", 0.0) + share
        return sums

    def _losses(
        self, networks: VqBetNetworks, batch: Batch, chunks: torch.Tensor, counted: torch.Tensor, seed: int
    ) -> dict[str, torch.Tensor]:
        """Return the losses of the observation steps ``counted`` ``(B, To)``."""
        outputs = networks.net(networks.features(batch))
        wanted = chunks[counted].to(self._device)
        generator = torch.Generator(self._device).manual_seed(seed)
        return losses(networks.net, outputs[counted], wanted, self._config.vqbet, generator)


def _groups(networks: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return the trained weights; those that multiply decay, biases and normalisations do not."""
    weights = [item for item in networks.parameters() if item.requires_grad]
    return [
        {"params": [item for item in weights if item.ndim > 1], "weight_decay": decay},
        {"params": [item for item in weights if item.ndim <= 1], "weight_decay": 0.0},
    ]

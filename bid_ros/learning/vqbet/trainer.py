"""Training of VQ-BeT: first the codes, then the transformer that predicts them."""

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch, TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.descent import rate_at, seed_of
from bid_ros.learning.trainer import Trainer
from bid_ros.learning.vqbet.losses import losses
from bid_ros.learning.vqbet.policy import VqBetNetworks
from bid_ros.learning.windows import batch_windows

CODER_SEED: Final = 30_000_000  # away from the seeds of training steps and of the validation
CODER_BATCH: Final = 512
SMALLEST_SPREAD: Final = 1e-3  # of chunks, normalised units


class VqBetTrainer(Trainer):
    """Training of VQ-BeT. Seed and step number determine batch, dropout and drawn codes of each step.

    Args:
        task: what is observed and commanded.
        data, training, validation, config, device: as of :class:`Trainer`.
    """

    networks: VqBetNetworks
    averaged: VqBetNetworks

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
        networks = VqBetNetworks(task, config.network, config.vqbet)
        networks.net.coder.requires_grad_(False)
        super().__init__(networks, data, training, validation, config, device)
        self.averaged.eval()
        self._steps = task.observation_steps

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
        windows, seed = self._next_windows(), seed_of(self._config.seed, self.step)
        torch.manual_seed(seed)  # of the dropout
        self.networks.train()
        batch = self._data.batch(windows, self._device, self._config.augment, seed)
        counted = torch.ones(len(windows), self._steps, dtype=torch.bool)
        # What was done before is not known from the newest observation alone.
        counted[torch.from_numpy(batch.forgotten), :-1] = False
        found = self._losses(self.networks, batch, self._data.chunks(windows), counted, seed)
        self.descend(found["loss"], self.learning_rate)
        return {name: value.item() for name, value in found.items()}

    def _judge(self, windows: NDArray[np.int64], seed: int) -> dict[str, float]:
        """Return ``val_loss``, ``val_action_error`` and ``val_code_share`` of the newest observation of each window."""
        counted = torch.zeros(len(windows), self._steps, dtype=torch.bool)
        counted[:, -1] = True
        batch, chunks = self._data.batch(windows, self._device), self._data.chunks(windows)
        found = self._losses(self.averaged, batch, chunks, counted, seed)
        return {f"val_{name}": found[name].item() for name in ("loss", "action_error", "code_share")}

    def _losses(
        self, networks: VqBetNetworks, batch: Batch, chunks: torch.Tensor, counted: torch.Tensor, seed: int
    ) -> dict[str, torch.Tensor]:
        """Return the losses of the observation steps ``counted`` ``(B, To)``."""
        outputs = networks.net(networks.features(batch))
        wanted = chunks[counted].to(self._device)
        generator = torch.Generator(self._device).manual_seed(seed)
        return losses(networks.net, outputs[counted], wanted, self._config.vqbet, generator)

    def _groups(self) -> list[dict[str, Any]]:
        """Return the trained weights; those that multiply decay, biases and normalisations do not."""
        weights = [item for item in self.networks.parameters() if item.requires_grad]
        return [
            {"params": [item for item in weights if item.ndim > 1], "weight_decay": self._config.weight_decay},
            {"params": [item for item in weights if item.ndim <= 1], "weight_decay": 0.0},
        ]

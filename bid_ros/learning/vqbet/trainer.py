"""Training of VQ-BeT: first the codes, then the transformer that predicts them, and offsets from what they stand for.

Source: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.3, Eqs. 5 and 6.
"""

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch
from bid_ros.learning.config import VqBetConfig
from bid_ros.learning.trainer import Trainer, rate_at, seed_of
from bid_ros.learning.vqbet.network import VqBet, VqBetNetworks
from bid_ros.learning.windows import batch_windows

CODER_SEED: Final = 30_000_000  # away from the seeds of training steps and of the validation
CODER_BATCH: Final = 512
SMALLEST_SPREAD: Final = 1e-3  # of chunks, normalised units


def losses(
    network: VqBet, outputs: torch.Tensor, chunks: torch.Tensor, config: VqBetConfig, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Return ``loss``, the one to descend, and what it is made of.

    Args:
        network: coder and heads.
        outputs: ``(M, width)`` of the transformer.
        chunks: ``(M, R, D)``, demonstrated, normalised.
        config: weights.
        generator: source of codes that are drawn.

    Returns:
        ``loss``; ``code_loss``, the weighted focal losses; ``action_error``, mean absolute error in units of the
        chunks' spread, with the codes that ``offset_codes`` says; ``code_share``, share of the likeliest first codes
        that are right.
    """
    heads, coder = network.heads, network.coder
    with torch.no_grad():
        true = coder.encode(chunks)
    primary, secondary = heads.primary(outputs), heads.second(outputs, true[:, 0])
    code_loss = config.primary_weight * _focal(primary, true[:, 0], config.focal)
    code_loss = code_loss + config.secondary_weight * _focal(secondary, true[:, 1], config.focal)
    codes = true
    if config.offset_codes == "drawn":
        with torch.no_grad():
            first = _draw(primary, config.temperature, generator)
            codes = torch.stack([first, _draw(heads.second(outputs, first), config.temperature, generator)], dim=1)
    offsets = heads.offsets(outputs).unflatten(-1, heads.shape)
    rows = torch.arange(len(codes), device=codes.device)
    offset = offsets[rows, 0, codes[:, 0]] + offsets[rows, 1, codes[:, 1]]
    predicted = coder.decode(codes).detach() + offset * coder.scale
    error = ((predicted - chunks) / coder.scale).abs().mean()
    right = (primary.argmax(dim=-1) == true[:, 0]).float().mean()
    total = code_loss + config.offset_weight * error
    return {"loss": total, "code_loss": code_loss.detach(), "action_error": error.detach(), "code_share": right}


def _focal(logits: torch.Tensor, target: torch.Tensor, exponent: float) -> torch.Tensor:
    log = nn.functional.log_softmax(logits, dim=-1).gather(-1, target[:, None])
    return -((1 - log.exp()) ** exponent * log).mean()


def _draw(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> torch.Tensor:
    return torch.multinomial((logits / temperature).softmax(dim=-1), 1, generator=generator)[:, 0]


class VqBetTrainer(Trainer):
    """Training of VQ-BeT. Seed and step number determine batch, dropout and drawn codes of each step."""

    networks: VqBetNetworks
    averaged: VqBetNetworks

    def _built(self, task: Task) -> nn.Module:
        networks = VqBetNetworks(task, self._config.network, self._config.vqbet)
        networks.net.coder.requires_grad_(False)
        self._steps = task.observation_steps
        return networks

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
        """Take one step and return its losses, see :func:`bid_ros.learning.vqbet.trainer.losses`."""
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
        outputs = networks.net(networks.join(networks.points(batch.images), batch.vectors))
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

"""VQ-BeT: a transformer that predicts codes of action chunks, and offsets from what the codes stand for.

Source: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.3. All samples of a decision come
from one pass: the codes are drawn from what it returns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from bid_ros.learning.vqbet.coder import Coder
from bid_ros.learning.vqbet.config import VqBetConfig
from bid_ros.learning.vqbet.gpt import Gpt
from bid_ros.policy.vqbet.codes import LAYERS


class Forecast(NamedTuple):
    """What the heads say of B predictions.

    Attributes:
        primary: ``(B, C)`` logits of the first code.
        secondary: ``(B, C, C)`` logits of the second code, a row for each first code.
        offsets: ``(B, 2, C, R, D)`` of each code. Those of both codes of a chunk add up.
    """

    primary: torch.Tensor
    secondary: torch.Tensor
    offsets: torch.Tensor

    def flat(self) -> torch.Tensor:
        """Return all numbers side by side, ``(B, C + C C + 2 C R D)``."""
        return torch.cat([part.flatten(1) for part in self], dim=1)


class Heads(nn.Module):  # type: ignore[misc]
    """From outputs of the transformer ``(B, width)`` to a :class:`Forecast`, offsets in units of the coder's scale."""

    def __init__(self, rows: int, action_dim: int, config: VqBetConfig) -> None:
        super().__init__()
        self.codes, self.sequential = config.codes, config.sequential
        self.shape = (LAYERS, config.codes, rows, action_dim)
        given = config.codes if config.sequential else 0
        self.primary = _head(config.width, config.head, config.codes)
        self.secondary = _head(config.width + given, config.head, config.codes)
        self.offsets = _head(config.width, config.head, LAYERS * config.codes * rows * action_dim)

    def second(self, values: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Return logits ``(B, C)`` of the second code, given the first codes ``(B,)``."""
        if not self.sequential:
            return self.secondary(values)
        return self.secondary(torch.cat([values, nn.functional.one_hot(first, self.codes).to(values.dtype)], dim=-1))

    def forward(self, values: torch.Tensor) -> Forecast:
        """Return logits and offsets, those of the second code for every first code."""
        table = values[:, None].expand(-1, self.codes, -1)
        if self.sequential:
            given = torch.eye(self.codes, dtype=values.dtype, device=values.device).expand(len(values), -1, -1)
            table = torch.cat([table, given], dim=-1)
        offsets = self.offsets(values).unflatten(-1, self.shape)
        return Forecast(self.primary(values), self.secondary(table), offsets)


class VqBet(nn.Module):  # type: ignore[misc]
    """Coder, transformer and heads.

    Args:
        sizes: of the features that make one token each, at every observation step.
        steps: To, observation steps.
        rows: R, rows of a chunk. The chunk of a step begins with the action at that step.
        action_dim: D.
        config: sizes.
        future: chunks that are predicted of the steps after the newest observation. They need queries.
    """

    def __init__(
        self, sizes: Sequence[int], steps: int, rows: int, action_dim: int, config: VqBetConfig, future: int = 0
    ) -> None:
        super().__init__()
        self.steps, self.future = steps, future
        self.coder = Coder(rows, action_dim, config)
        self.project = nn.ModuleList(nn.Linear(size, config.width) for size in sizes)
        self.query = nn.Parameter(torch.randn(config.width)) if config.queries else None
        positions = steps * (len(sizes) + config.queries) + future
        self.gpt = Gpt(config.width, config.layers, config.heads, positions, config.dropout)
        self.heads = Heads(rows, action_dim, config)

    def tokens(self, features: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the tokens ``(B, T, width)`` of features ``(B, To, S)``, step by step, each step's query last."""
        parts = [layer(values) for layer, values in zip(self.project, features, strict=True)]
        if self.query is not None:
            parts.append(self.query.expand_as(parts[0]))
        tokens = torch.stack(parts, dim=2).flatten(1, 2)
        if self.query is None or not self.future:
            return tokens
        return torch.cat([tokens, self.query.expand(len(tokens), self.future, -1)], dim=1)

    def forecast(self, values: torch.Tensor) -> Forecast:
        """Return what the heads say of outputs ``(B, width)``, offsets in normalised units."""
        forecast: Forecast = self.heads(values)
        return forecast._replace(offsets=forecast.offsets * self.coder.scale)

    def forward(self, features: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return outputs ``(B, To + future, width)``, one for each step, for the heads."""
        outputs = self.gpt(self.tokens(features))
        each = (outputs.shape[1] - self.future) // self.steps
        seen = outputs[:, : self.steps * each].unflatten(1, (self.steps, each))[:, :, -1]
        return torch.cat([seen, outputs[:, self.steps * each :]], dim=1)


def _head(inputs: int, hidden: int, outputs: int) -> nn.Module:
    if not hidden:
        return nn.Linear(inputs, outputs)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, outputs))

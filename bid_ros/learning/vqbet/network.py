"""VQ-BeT: a transformer that predicts codes of action chunks, and offsets from what the codes stand for.

Source: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.3. All samples of a decision come
from one pass: the codes are drawn from what it returns. The transformer is that of Radford et al., "Language Models are
Unsupervised Multitask Learners", 2019 (GPT-2): normalisation comes before attention and before the feed-forward part,
and the output has no bias.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.config import NetworkConfig, VqBetConfig
from bid_ros.learning.networks import CameraEncoders
from bid_ros.learning.vqbet.coder import Coder
from bid_ros.policy.vqbet.codes import LAYERS


class CausalAttention(nn.Module):  # type: ignore[misc]
    """Causal self-attention with several heads, ``(B, T, width)`` to the same shape."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.joint = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return what each token gathers from itself and the tokens before it."""
        batch, length, width = values.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.joint(values).view(shape).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        later = torch.ones(length, length, dtype=torch.bool, device=values.device).triu(1)
        shares = scores.masked_fill(later, -math.inf).softmax(dim=-1)
        shares = nn.functional.dropout(shares, self.dropout, self.training)
        gathered = (shares @ value).transpose(1, 2).reshape(batch, length, width)
        return nn.functional.dropout(self.output(gathered), self.dropout, self.training)


class Block(nn.Module):  # type: ignore[misc]
    """Attention and a feed-forward part, each beside a residual connection."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), CausalAttention(width, heads, dropout)
        self.before_forward = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the tokens ``(B, T, width)``."""
        values = values + self.attention(self.before_attention(values))
        return values + self.feed(self.before_forward(values))


class Gpt(nn.Module):  # type: ignore[misc]
    """The transformer, ``(B, T, width)`` to the same shape.

    Args:
        width: of a token.
        layers, heads: how many.
        positions: largest T.
        dropout: in training.
    """

    def __init__(self, width: int, layers: int, heads: int, positions: int, dropout: float) -> None:
        super().__init__()
        self.token, self.position = nn.Linear(width, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(dropout)
        self.apply(_initialise)
        for block in self.blocks:
            nn.init.normal_(block.attention.output.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return an output for every token; that of token ``t`` depends on the tokens up to ``t`` only."""
        values = self.drop(self.token(tokens) + self.position.weight[: tokens.shape[1]])
        for block in self.blocks:
            values = block(values)
        return self.output(self.norm(values))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


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


class VqBetNetworks(CameraEncoders):
    """Encoders of the images and :class:`VqBet`. Each camera makes one token a step, all vectors together another one.

    Args:
        task: names and shapes of the features.
        images: sizes of the image encoders.
        config: everything else.

    Attributes:
        net: transformer, coder and heads.
    """

    def __init__(self, task: Task, images: NetworkConfig, config: VqBetConfig) -> None:
        super().__init__(task, images)
        sizes = [2 * images.keypoints] * len(self.cameras)
        if self.vectors:
            sizes.append(sum(item.size for item in task.vectors))
        self.rows = task.chunk_rows
        self.net = VqBet(sizes, task.observation_steps, self.rows, task.action_dim, config)

    def join(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return key points ``(B, To, 2 K)`` of each camera, and all vectors ``(B, To, S)`` side by side."""
        if not self.vectors:
            return list(points)
        return [*points, torch.cat([vectors[name] for name in self.vectors], dim=-1)]

    def forecast(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> Forecast:
        """Return what is predicted at the newest observation, B = 1, of the arguments of :meth:`join`."""
        return self.net.forecast(self.net(self.join(points, vectors))[:, self.net.steps - 1])

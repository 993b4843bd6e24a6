"""A causal transformer over observation tokens.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019 (GPT-2): normalisation comes before
attention and before the feed-forward part, and the output has no bias.
"""

import math

import torch
from torch import nn


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

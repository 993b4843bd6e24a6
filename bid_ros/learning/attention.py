"""Attention with the tensors' names of PyTorch's layers, from plain products that every runtime knows; embedded times.

Vaswani et al., "Attention Is All You Need", NeurIPS 2017, Sections 3.2 and 3.5.
"""

import math

import torch
from torch import nn


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Return softmax(Q K^T / sqrt(size) + mask) V (Eq. 1) of ``(..., heads, T, size)``."""
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    return (scores if mask is None else scores + mask).softmax(dim=-1) @ value


def split_heads(values: torch.Tensor, heads: int) -> torch.Tensor:
    """Return ``(B, T, heads * size)`` as ``(B, heads, T, size)``."""
    return values.reshape(values.shape[0], values.shape[1], heads, -1).transpose(1, 2)


def join_heads(values: torch.Tensor) -> torch.Tensor:
    """Return ``(B, heads, T, size)`` as ``(B, T, heads * size)``."""
    return values.transpose(1, 2).flatten(2)


class Attention(nn.Module):  # type: ignore[misc]
    """Several heads of attention, with the tensors of ``nn.MultiheadAttention``."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * size, size))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * size))
        self.out_proj = nn.Linear(size, size)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.in_proj_bias)

    def forward(
        self,
        query: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        values: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return what ``query`` ``(B, T, size)`` finds in ``memory`` ``(B or 1, S, size)``.

        ``values``: what is found at the places of the memory, ``(B or 1, S, size)``; None: the memory itself.
        """
        weights, biases = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        sources = (query, memory, memory if values is None else values)
        q, k, v = (
            split_heads(nn.functional.linear(source, weight, bias), self.heads)
            for source, weight, bias in zip(sources, weights, biases, strict=True)
        )
        return self.out_proj(join_heads(attend(q, k, v, mask)))


class SinusoidalEmbedding(nn.Module):  # type: ignore[misc]
    """``(B,)`` float time steps to ``(B, size)``: all sines, then all cosines."""

    def __init__(self, size: int) -> None:
        super().__init__()
        half = size // 2
        scale = math.log(10000) / (half - 1)
        self.register_buffer("frequencies", torch.exp(torch.arange(half) * -scale), persistent=False)

    def forward(self, step: torch.Tensor) -> torch.Tensor:
        """Return the embedding."""
        angles = step.unsqueeze(-1) * self.frequencies.unsqueeze(0)
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

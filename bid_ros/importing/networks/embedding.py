"""Sinusoidal embedding of a time step (Vaswani et al., "Attention Is All You Need", NeurIPS 2017, Section 3.5)."""

import math

import torch
from torch import nn


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

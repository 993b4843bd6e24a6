"""The denoiser of a diffusion policy, as it is trained.

A conditional one-dimensional U-Net (Chi et al., "Diffusion Policy", RSS 2023, Section 4 and Appendix), small enough for
a CPU ten times a second. All samples of a decision share step and condition, so the FiLM layers compute one row,
whatever the number of samples. It uses SiLU instead of Mish, because OpenVINO's compiler does not fuse Mish.
"""

import math
from itertools import pairwise

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.config import GROUPS, NetworkConfig


class ResidualBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions along time, the first followed by FiLM (Perez et al., AAAI 2018): scale and shift a channel.

    ``(N, inputs, T)`` and a context ``(N or 1, context)`` to ``(N, outputs, T)``.
    """

    def __init__(self, inputs: int, outputs: int, context: int, kernel: int) -> None:
        super().__init__()
        self.first = _time_convolution(inputs, outputs, kernel)
        self.second = _time_convolution(outputs, outputs, kernel)
        self.film = nn.Linear(context, 2 * outputs)
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, values: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        scale, shift = self.film(context).unsqueeze(-1).chunk(2, dim=1)
        hidden = self.first(values) * (1 + scale) + shift
        return self.second(hidden) + self.skip(values)


class Denoiser(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        horizon: H.
        action_dim: D.
        config: sizes.

    Raises:
        BidError: the horizon cannot be halved once for each level after the first.
    """

    def __init__(self, horizon: int, action_dim: int, config: NetworkConfig) -> None:
        super().__init__()
        widths, context = config.widths, config.condition + config.step_embedding
        factor = 2 ** (len(widths) - 1)
        if horizon % factor:
            raise BidError(f"horizon is {horizon}; valid for {len(widths)} widths is a multiple of {factor}")

        def blocks(inputs: int, outputs: int) -> nn.ModuleList:
            first = [inputs] + [outputs] * (config.blocks - 1)
            return nn.ModuleList(ResidualBlock(size, outputs, context, config.kernel) for size in first)

        half = config.step_embedding // 2
        self.register_buffer(
            "frequencies", torch.exp(-math.log(1e4) * torch.arange(half) / (half - 1)), persistent=False
        )
        self.embed = nn.Sequential(nn.Linear(2 * half, 4 * half), nn.SiLU(), nn.Linear(4 * half, 2 * half))
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(blocks(low, high) for low, high in zip((action_dim, *widths), widths, strict=False))
        self.shrink = nn.ModuleList(nn.Conv1d(low, low, 3, stride=2, padding=1) for low, _ in pairs)
        self.middle = blocks(widths[-1], widths[-1])
        self.up = nn.ModuleList(blocks(2 * high, low) for low, high in reversed(pairs))
        self.grow = nn.ModuleList(nn.ConvTranspose1d(low, low, 4, stride=2, padding=1) for low, _ in reversed(pairs))
        self.final = _time_convolution(widths[0], widths[0], config.kernel)
        self.output = nn.Conv1d(widths[0], action_dim, 1)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)``.

        Args:
            sample: ``(N, H, D)``, normalised.
            step: ``(N,)`` or ``(1,)`` int64, training time step.
            condition: ``(N, C)`` or ``(1, C)``.
        """
        angles = step.to(sample.dtype).unsqueeze(-1) * self.frequencies
        level = self.embed(torch.cat([angles.sin(), angles.cos()], dim=-1))
        context = nn.functional.silu(torch.cat([level, condition], dim=-1))
        hidden = sample.transpose(1, 2)
        kept = []
        for index, group in enumerate(self.down):
            hidden = _through(group, hidden, context)
            kept.append(hidden)
            if index < len(self.shrink):
                hidden = self.shrink[index](hidden)
        hidden = _through(self.middle, hidden, context)
        for group, grow in zip(self.up, self.grow, strict=True):
            hidden = grow(_through(group, torch.cat([hidden, kept.pop()], dim=1), context))
        return self.output(self.final(hidden)).transpose(1, 2)


def _through(group: nn.ModuleList, hidden: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    for block in group:
        hidden = block(hidden, context)
    return hidden


def _time_convolution(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.GroupNorm(GROUPS, outputs), nn.SiLU()
    )

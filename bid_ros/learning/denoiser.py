"""The denoiser of a diffusion policy, as it is trained.

A conditional one-dimensional U-Net (Chi et al., "Diffusion Policy", RSS 2023, Section 4 and Appendix), small enough for
a CPU ten times a second. All samples of a decision share step and condition, so the FiLM layers compute one row,
whatever the number of samples. It uses SiLU instead of Mish, because OpenVINO's compiler does not fuse Mish.

Where a policy is trained for delays, the first rows of a chunk may be given clean while the others are noisy (Black et
al., "Training-Time Action Conditioning for Efficient Real-Time Chunking", 2025): each row has a time step of its own.
There are two of them only. So each FiLM layer computes two rows, and mixes them by the share of given rows among those
that a level's row stands for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.config import GROUPS, NetworkConfig


@dataclass(frozen=True, eq=False)
class _Given:
    """Rows that are given clean.

    Attributes:
        context: of a clean row, as that of the noisy ones.
        shares: per level ``(N or 1, 1, T)``: how much of what a row stands for is given.
    """

    context: torch.Tensor
    shares: Sequence[torch.Tensor]


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

    def forward(
        self, values: torch.Tensor, context: torch.Tensor, given: _Given | None = None, level: int = 0
    ) -> torch.Tensor:
        """Return the block's output. ``given``: clean rows, ``level``: on which the block is."""
        film = self.film(context).unsqueeze(-1)
        if given is not None:
            film = film + given.shares[level] * (self.film(given.context).unsqueeze(-1) - film)
        scale, shift = film.chunk(2, dim=1)
        hidden = self.first(values) * (1 + scale) + shift
        return self.second(hidden) + self.skip(values)


class Denoiser(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        horizon: H.
        action_dim: D.
        config: sizes.
        clean_step: time step of rows that are given clean. None: none are.

    Raises:
        BidError: the horizon cannot be halved once for each level after the first.
    """

    def __init__(self, horizon: int, action_dim: int, config: NetworkConfig, clean_step: int | None = None) -> None:
        super().__init__()
        self.horizon, self.clean_step = horizon, clean_step
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

    def forward(
        self,
        sample: torch.Tensor,
        step: torch.Tensor,
        condition: torch.Tensor,
        prefix_rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the prediction ``(N, H, D)``.

        Args:
            sample: ``(N, H, D)``, normalised.
            step: ``(N,)`` or ``(1,)`` int64, training time step.
            condition: ``(N, C)`` or ``(1, C)``.
            prefix_rows: ``(N,)`` or ``(1,)`` int64: how many of the first rows are given clean. None: no row.
        """
        context = self._context(step, sample, condition)
        given = None if prefix_rows is None else self._given(prefix_rows, step, sample, condition)
        hidden = sample.transpose(1, 2)
        kept = []
        last = len(self.down) - 1
        for index, group in enumerate(self.down):
            hidden = _through(group, hidden, context, given, index)
            kept.append(hidden)
            if index < last:
                hidden = self.shrink[index](hidden)
        hidden = _through(self.middle, hidden, context, given, last)
        for index, (group, grow) in enumerate(zip(self.up, self.grow, strict=True)):
            hidden = grow(_through(group, torch.cat([hidden, kept.pop()], dim=1), context, given, last - index))
        return self.output(self.final(hidden)).transpose(1, 2)

    def _context(self, step: torch.Tensor, sample: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return what the FiLM layers read, ``(N or 1, context)``."""
        angles = step.to(sample.dtype).unsqueeze(-1) * self.frequencies
        level = self.embed(torch.cat([angles.sin(), angles.cos()], dim=-1))
        return nn.functional.silu(torch.cat([level, condition], dim=-1))

    def _given(self, rows: torch.Tensor, step: torch.Tensor, sample: torch.Tensor, condition: torch.Tensor) -> _Given:
        # Not `full_like`: an exported graph would hold it for one condition, and a bench gives each sample its own.
        clean = self._context(step * 0 + self.clean_step, sample, condition)
        strides = [2**level for level in range(len(self.down))]
        return _Given(clean, [prefix_share(rows, self.horizon, stride).unsqueeze(1) for stride in strides])


def prefix_share(rows: torch.Tensor, horizon: int, stride: int = 1) -> torch.Tensor:
    """Return how much of each ``stride`` rows of a chunk is given where its first ``rows`` ``(N,)`` are.

    ``(N, horizon // stride)``, 0 to 1; with a stride of 1 a row is given or not.
    """
    at = torch.arange(horizon // stride, dtype=torch.float32, device=rows.device)
    return (rows.to(at.dtype).unsqueeze(-1) / stride - at).clamp(0.0, 1.0)


def _through(
    group: nn.ModuleList, hidden: torch.Tensor, context: torch.Tensor, given: _Given | None, level: int
) -> torch.Tensor:
    for block in group:
        hidden = block(hidden, context, given, level)
    return hidden


def _time_convolution(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.GroupNorm(GROUPS, outputs), nn.SiLU()
    )

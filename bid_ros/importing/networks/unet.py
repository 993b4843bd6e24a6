"""The one-dimensional U-Net of published diffusion policies.

Chi et al., "Diffusion Policy", RSS 2023, Section 4. The attributes have the names that LeRobot gives them.
"""

from itertools import pairwise

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.attention import SinusoidalEmbedding

LAST_GROUPS = 8  # of the normalisation behind the last level


def check_sizes(horizon: int, widths: tuple[int, ...], kernel: int, groups: int, where: str) -> None:
    """Raise BidError if a U-Net of such sizes computes nothing; ``where`` names the configuration.

    Args:
        horizon: H, rows of a chunk.
        widths, kernel, groups: as of :class:`ConditionalUnet`.
        where: begins the sentence.
    """
    halvings = 2 ** (len(widths) - 1)
    if horizon % halvings:
        raise BidError(f"{where}: horizon is {horizon}; valid is a multiple of {halvings}")
    if kernel % 2 == 0:
        raise BidError(f"{where}: kernel_size is {kernel}; valid is an odd number")
    if any(width % groups for width in widths) or widths[0] % LAST_GROUPS:
        raise BidError(
            f"{where}: down_dims are {list(widths)} with n_groups {groups}; valid are multiples of n_groups, the first "
            f"one also of {LAST_GROUPS}"
        )


class ConvolutionBlock(nn.Module):  # type: ignore[misc]
    """Convolution along time, group normalisation, Mish: ``(N, inputs, T)`` to ``(N, outputs, T)``."""

    def __init__(self, inputs: int, outputs: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.GroupNorm(groups, outputs), nn.Mish()
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        return self.block(values)


class ConditionalBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions with FiLM between them (Perez et al., AAAI 2018).

    ``(N, inputs, T)`` and a context ``(N or 1, context)`` to ``(N, outputs, T)``.

    Args:
        inputs, outputs: channels.
        context: size of the context.
        kernel: width of the convolutions.
        groups: of the normalisation.
        scales: whether FiLM scales and shifts; else it only shifts.
    """

    def __init__(self, inputs: int, outputs: int, context: int, kernel: int, groups: int, scales: bool) -> None:
        super().__init__()
        self.scales = scales
        self.conv1 = ConvolutionBlock(inputs, outputs, kernel, groups)
        self.conv2 = ConvolutionBlock(outputs, outputs, kernel, groups)
        self.cond_encoder = nn.Sequential(nn.Mish(), nn.Linear(context, outputs * (2 if scales else 1)))
        self.residual_conv = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, values: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        film = self.cond_encoder(context).unsqueeze(-1)
        hidden = self.conv1(values)
        if self.scales:
            scale, shift = film.chunk(2, dim=1)
            hidden = scale * hidden + shift
        else:
            hidden = hidden + film
        return self.conv2(hidden) + self.residual_conv(values)


class ConditionalUnet(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        action_dim: D.
        condition: C, size of the condition.
        widths: channels of each level; the horizon is halved between two of them.
        kernel: width of the convolutions.
        groups: of the normalisation.
        embedding: size of the embedded noise level.
        scales: see :class:`ConditionalBlock`.
    """

    def __init__(
        self,
        action_dim: int,
        condition: int,
        widths: tuple[int, ...],
        kernel: int = 5,
        groups: int = 8,
        embedding: int = 128,
        scales: bool = True,
    ) -> None:
        super().__init__()
        context = embedding + condition

        def block(inputs: int, outputs: int) -> ConditionalBlock:
            return ConditionalBlock(inputs, outputs, context, kernel, groups, scales)

        self.diffusion_step_encoder = nn.Sequential(
            SinusoidalEmbedding(embedding),
            nn.Linear(embedding, 4 * embedding),
            nn.Mish(),
            nn.Linear(4 * embedding, embedding),
        )
        self.down_modules = nn.ModuleList()
        for level, (inputs, outputs) in enumerate(pairwise((action_dim, *widths))):
            shrink = nn.Conv1d(outputs, outputs, 3, 2, 1) if level < len(widths) - 1 else nn.Identity()
            self.down_modules.append(nn.ModuleList([block(inputs, outputs), block(outputs, outputs), shrink]))
        self.mid_modules = nn.ModuleList(block(widths[-1], widths[-1]) for _ in range(2))
        self.up_modules = nn.ModuleList(
            nn.ModuleList([block(2 * high, low), block(low, low), nn.ConvTranspose1d(low, low, 4, 2, 1)])
            for low, high in reversed(list(pairwise(widths)))
        )
        self.final_conv = nn.Sequential(
            ConvolutionBlock(widths[0], widths[0], kernel, LAST_GROUPS), nn.Conv1d(widths[0], action_dim, 1)
        )

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)``.

        Args:
            sample: ``(N, H, D)``, normalised.
            step: ``(1,)`` int64, training time step.
            condition: ``(1, C)``.
        """
        context = torch.cat([self.diffusion_step_encoder(step.to(sample.dtype)), condition], dim=-1)
        hidden, kept = sample.transpose(1, 2), []
        for first, second, shrink in self.down_modules:
            hidden = second(first(hidden, context), context)
            kept.append(hidden)
            hidden = shrink(hidden)
        for block in self.mid_modules:
            hidden = block(hidden, context)
        for first, second, grow in self.up_modules:
            hidden = grow(second(first(torch.cat([hidden, kept.pop()], dim=1), context), context))
        return self.final_conv(hidden).transpose(1, 2)

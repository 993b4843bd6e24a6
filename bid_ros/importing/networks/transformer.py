"""The transformer of published diffusion policies, conditioned on noise level and observation.

Chi et al., "Diffusion Policy", RSS 2023, Section 4 ("Time-series diffusion transformer"). The names of tensors are
those of its checkpoints.
"""

import torch
from torch import nn

from bid_ros.importing.networks.attention import Attention
from bid_ros.importing.networks.embedding import SinusoidalEmbedding


class EncoderLayer(nn.Module):  # type: ignore[misc]
    """Self-attention and two layers, each normalised before: ``(B, S, size)`` to the same."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.self_attn = Attention(size, heads)
        self.linear1, self.linear2 = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        hidden = self.norm1(values)
        values = values + self.self_attn(hidden, hidden)
        return values + self.linear2(nn.functional.gelu(self.linear1(self.norm2(values))))


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Self-attention, attention to the condition, and two layers, each normalised before."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.self_attn, self.multihead_attn = Attention(size, heads), Attention(size, heads)
        self.linear1, self.linear2 = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(size), nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(
        self,
        values: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None,
        memory_mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the layer's output ``(N, H, size)``; ``memory`` is ``(1, S, size)``."""
        hidden = self.norm1(values)
        values = values + self.self_attn(hidden, hidden, mask)
        values = values + self.multihead_attn(self.norm2(values), memory, memory_mask)
        return values + self.linear2(nn.functional.gelu(self.linear1(self.norm3(values))))


class Stack(nn.Module):  # type: ignore[misc]
    """Layers by the name that PyTorch gives them."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class ChunkTransformer(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        action_dim: D.
        positions: rows that have a learned position; at least H.
        steps: To.
        step: numbers of an observation step.
        size, layers, heads: of the transformer.
        condition_layers: layers of attention that the condition goes through; 0: two plain layers.
        causal: a row sees rows up to itself, and observations up to its instant.
    """

    def __init__(
        self,
        action_dim: int,
        positions: int,
        steps: int,
        step: int,
        size: int,
        layers: int,
        heads: int,
        condition_layers: int,
        causal: bool,
    ) -> None:
        super().__init__()
        self.steps, self.causal = steps, causal
        self.input_emb = nn.Linear(action_dim, size)
        self.pos_emb = nn.Parameter(torch.zeros(1, positions, size))
        self.time_emb = SinusoidalEmbedding(size)
        self.cond_obs_emb = nn.Linear(step, size)
        self.cond_pos_emb = nn.Parameter(torch.zeros(1, 1 + steps, size))
        if condition_layers:
            self.encoder: nn.Module = Stack([EncoderLayer(size, heads) for _ in range(condition_layers)])
        else:
            self.encoder = nn.Sequential(nn.Linear(size, 4 * size), nn.Mish(), nn.Linear(4 * size, size))
        self.decoder = Stack([DecoderLayer(size, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(size)
        self.head = nn.Linear(size, action_dim)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)`` of ``(N, H, D)``, step int64 ``(1,)`` and condition ``(1, To step)``."""
        time = self.time_emb(step.to(sample.dtype)).unsqueeze(1)
        observed = self.cond_obs_emb(condition.reshape(1, self.steps, -1))
        memory = torch.cat([time, observed], dim=1) + self.cond_pos_emb
        for layer in self.encoder.layers if isinstance(self.encoder, Stack) else [self.encoder]:
            memory = layer(memory)
        rows = sample.shape[1]
        hidden = self.input_emb(sample) + self.pos_emb[:, :rows]
        mask, memory_mask = self._masks(rows, 1 + self.steps)
        for layer in self.decoder.layers:
            hidden = layer(hidden, memory, mask, memory_mask)
        return self.head(self.ln_f(hidden))

    def _masks(self, rows: int, observed: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Return what is added to the scores: -inf where a row may not look. The noise level may always be seen."""
        if not self.causal:
            return None, None
        row = torch.arange(rows).unsqueeze(1)
        blocked = (torch.arange(rows) > row, torch.arange(observed) - 1 > row)
        own, memory = (torch.zeros(where.shape).masked_fill(where, -torch.inf) for where in blocked)
        return own, memory

"""The transformers that denoise chunks: of published diffusion policies, and of LeRobot's ``multi_task_dit``.

Chi et al., "Diffusion Policy", RSS 2023, Section 4 ("Time-series diffusion transformer"); Peebles & Xie, "Scalable
Diffusion Models with Transformers", ICCV 2023, Section 3.2 (adaLN-Zero); Su et al., "RoFormer", 2021, Eq. 34 (rotary
position embedding). The names of tensors are those of the checkpoints.
"""

from collections.abc import Iterable

import torch
from torch import nn

from bid_ros.learning.attention import Attention, SinusoidalEmbedding, attend, join_heads, split_heads


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


def _stack(layers: Iterable[nn.Module]) -> nn.ModuleDict:
    """Return layers by the name that PyTorch gives them."""
    return nn.ModuleDict({"layers": nn.ModuleList(layers)})


class ChunkTransformer(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        action_dim: D.
        positions: rows that have a learned position; at least H.
        steps: To.
        step: numbers of an observation step.
        size, layers, heads: of the transformer.
        condition_layers: layers of attention that the condition goes through; 0: two plain layers.
        causal: a row sees rows up to itself, and observations up to its timestamp.
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
            self.encoder: nn.Module = _stack(EncoderLayer(size, heads) for _ in range(condition_layers))
        else:
            self.encoder = nn.Sequential(nn.Linear(size, 4 * size), nn.Mish(), nn.Linear(4 * size, size))
        self.decoder = _stack(DecoderLayer(size, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(size)
        self.head = nn.Linear(size, action_dim)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)`` of ``(N, H, D)``, step int64 ``(1,)`` and condition ``(1, To step)``."""
        time = self.time_emb(step.to(sample.dtype)).unsqueeze(1)
        observed = self.cond_obs_emb(condition.reshape(1, self.steps, -1))
        memory = torch.cat([time, observed], dim=1) + self.cond_pos_emb
        for layer in self.encoder["layers"] if isinstance(self.encoder, nn.ModuleDict) else [self.encoder]:
            memory = layer(memory)
        rows = sample.shape[1]
        hidden = self.input_emb(sample) + self.pos_emb[:, :rows]
        mask, memory_mask = self._masks(rows, 1 + self.steps)
        for layer in self.decoder["layers"]:
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


class RotaryAttention(nn.Module):  # type: ignore[misc]
    """Self-attention that rotates queries and keys by their position: ``(B, T, size)`` to the same."""

    def __init__(self, size: int, heads: int, length: int, base: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv_proj = nn.Linear(size, 3 * size)
        self.out_proj = nn.Linear(size, size)
        head = size // heads
        rates = 1.0 / (base ** (torch.arange(0, head, 2).float() / head))
        angles = torch.outer(torch.arange(length, dtype=rates.dtype), rates).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the attended values."""
        query, key, value = (split_heads(part, self.heads) for part in self.qkv_proj(values).chunk(3, dim=-1))
        return self.out_proj(join_heads(attend(self._rotate(query), self._rotate(key), value)))

    def _rotate(self, values: torch.Tensor) -> torch.Tensor:
        first, second = values.chunk(2, dim=-1)
        return values * self.cosine + torch.cat([-second, first], dim=-1) * self.sine


class TransformerBlock(nn.Module):  # type: ignore[misc]
    """Attention and two layers, each shifted, scaled and gated by the context ``(1, context)``."""

    def __init__(self, size: int, heads: int, context: int, length: int, rotary: bool, base: float) -> None:
        super().__init__()
        self.rotary = rotary
        if rotary:
            self.attn = RotaryAttention(size, heads, length, base)
        else:
            self.multihead_attn = Attention(size, heads)
        self.norm1 = nn.LayerNorm(size, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(size, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size))
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(context, 6 * size))

    def forward(self, values: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Return the block's output ``(N, H, size)``."""
        parts = [part.unsqueeze(1) for part in self.adaLN_modulation(context).chunk(6, dim=1)]
        shift, scale, gate, shift_after, scale_after, gate_after = parts
        hidden = self.norm1(values) * (1 + scale) + shift
        values = values + gate * (self.attn(hidden) if self.rotary else self.multihead_attn(hidden, hidden))
        hidden = self.norm2(values) * (1 + scale_after) + shift_after
        return values + gate_after * self.mlp(hidden)


class DiffusionTransformer(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, time and condition.

    Args:
        action_dim: D.
        horizon: H.
        condition: C.
        size, layers, heads: of the transformer.
        embedding: size of the embedded time.
        rotary: rotary position embedding.
        base: of its angles.
        positions: learned position embedding.
        times: the network's time is the step divided by this: 1 for noise levels, T for the time 0 to 1 of a flow.
    """

    def __init__(
        self,
        action_dim: int,
        horizon: int,
        condition: int,
        size: int,
        layers: int,
        heads: int,
        embedding: int,
        rotary: bool,
        base: float,
        positions: bool,
        times: int,
    ) -> None:
        super().__init__()
        self.times = times
        self.time_mlp = nn.Sequential(
            SinusoidalEmbedding(embedding),
            nn.Linear(embedding, 2 * embedding),
            nn.GELU(),
            nn.Linear(2 * embedding, embedding),
            nn.GELU(),
        )
        self.input_proj = nn.Linear(action_dim, size)
        self.pos_embedding = nn.Parameter(torch.zeros(1, horizon, size)) if positions else None
        self.transformer_blocks = nn.ModuleList(
            TransformerBlock(size, heads, embedding + condition, horizon, rotary, base) for _ in range(layers)
        )
        self.output_proj = nn.Linear(size, action_dim)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)`` of ``(N, H, D)``, step int64 ``(1,)`` and condition ``(1, C)``."""
        time = step.to(sample.dtype) / self.times
        context = torch.cat([self.time_mlp(time), condition], dim=-1)
        hidden = self.input_proj(sample)
        if self.pos_embedding is not None:
            hidden = hidden + self.pos_embedding
        for block in self.transformer_blocks:
            hidden = block(hidden, context)
        return self.output_proj(hidden)

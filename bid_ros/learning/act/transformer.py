"""The Action Chunking Transformer: one chunk for one observation. Nothing is drawn.

Zhao et al., "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", RSS 2023, Section IV and Appendix C.
The positions are those of Carion et al., "End-to-End Object Detection with Transformers", ECCV 2020: learned for what
is no image, sines for the places of an image's map, and added to queries and keys in every layer, not to values. The
names of tensors are those of LeRobot's checkpoints.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.attention import Attention


@dataclass(frozen=True)
class ActSizes:
    """Sizes of the transformer.

    Attributes:
        size: of a token.
        heads: of the attention.
        hidden: of the two layers behind the attention.
        encoder_layers, decoder_layers: their numbers.
        latent: of the style variable, which is 0 when the policy acts.
        gelu: GELU between the two layers; else ReLU.
        before: normalised before each part of a layer; else after it.

    Raises:
        BidError: the size is no multiple of the heads.
    """

    size: int
    heads: int
    hidden: int
    encoder_layers: int
    decoder_layers: int
    latent: int
    gelu: bool = False
    before: bool = False

    def __post_init__(self) -> None:
        if self.size % self.heads:
            raise BidError(f"the size of a token is {self.size}; valid with {self.heads} heads is a multiple of them")


class ActLayer(nn.Module):  # type: ignore[misc]
    """Self-attention, attention to a memory where ``crosses``, and two layers; each around a way past it."""

    def __init__(self, sizes: ActSizes, crosses: bool) -> None:
        super().__init__()
        self.before, self.crosses, self.activate = sizes.before, crosses, nn.GELU() if sizes.gelu else nn.ReLU()
        self.self_attn = Attention(sizes.size, sizes.heads)
        if crosses:
            self.multihead_attn = Attention(sizes.size, sizes.heads)
        self.linear1, self.linear2 = nn.Linear(sizes.size, sizes.hidden), nn.Linear(sizes.hidden, sizes.size)
        for number in range(1, 4 if crosses else 3):
            self.add_module(f"norm{number}", nn.LayerNorm(sizes.size))

    def forward(
        self,
        values: torch.Tensor,
        places: torch.Tensor,
        memory: torch.Tensor | None = None,
        memory_places: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return ``(B, T, size)`` of ``(B, T, size)`` at ``places`` ``(T, size)``.

        Args:
            values: tokens.
            places: their positions.
            memory: ``(B, S, size)``, what a layer that crosses attends to.
            memory_places: ``(S, size)``, its positions.
            mask: added to the scores of the self-attention.
        """

        def itself(now: torch.Tensor) -> torch.Tensor:
            return self.self_attn(now + places, now + places, mask, values=now)

        def across(now: torch.Tensor) -> torch.Tensor:
            assert memory is not None
            return self.multihead_attn(now + places, memory + memory_places, values=memory)

        def feed(now: torch.Tensor) -> torch.Tensor:
            return self.linear2(self.activate(self.linear1(now)))

        for number, part in enumerate((itself, across, feed) if self.crosses else (itself, feed), 1):
            norm = getattr(self, f"norm{number}")
            values = values + part(norm(values)) if self.before else norm(values + part(values))
        return values


def act_layers(sizes: ActSizes, count: int, crosses: bool = False) -> nn.ModuleDict:
    """Return layers and what follows them: a decoder is always normalised, an encoder where its layers are before."""
    norm = nn.LayerNorm(sizes.size) if crosses or sizes.before else nn.Identity()
    return nn.ModuleDict({"layers": nn.ModuleList(ActLayer(sizes, crosses) for _ in range(count)), "norm": norm})


def map_places(height: int, width: int, size: int) -> torch.Tensor:
    """Return the positions ``(height width, size)`` of an image's map, row by row.

    The first half of the numbers tells the row, the second the column. Rows and columns count from 1 to their number,
    which is 2 pi. Sine and cosine alternate, a pair for each frequency.
    """
    half = torch.arange(size // 2, dtype=torch.float64)
    frequencies = 10000.0 ** (2 * (half // 2) / len(half))

    def axis(count: int) -> torch.Tensor:
        angles = torch.arange(1, count + 1, dtype=torch.float64)[:, None] / (count + 1e-6) * 2 * math.pi / frequencies
        return torch.where(half % 2 == 0, angles.sin(), angles.cos())

    rows, columns = axis(height)[:, None].expand(-1, width, -1), axis(width)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=-1).flatten(0, 1).float()


class ActTransformer(nn.Module):  # type: ignore[misc]
    """From tokens to a chunk.

    Args:
        sizes: of the transformer.
        action_dim: D.
        rows: R, rows of a chunk; the first is that of the newest observation.
        vectors: size of each vector by its name in the tensors' names; each makes a token.
        maps: height and width of each camera's map.

    Raises:
        BidError: the size of a token cannot tell the places of a map.
    """

    def __init__(
        self,
        sizes: ActSizes,
        action_dim: int,
        rows: int,
        vectors: Mapping[str, int],
        maps: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__()
        if maps and sizes.size % 4:
            raise BidError(f"the size of a token is {sizes.size}; valid with images is a multiple of 4")
        self.vectors, self.size = tuple(vectors), sizes.size
        self.encoder_latent_input_proj = nn.Linear(sizes.latent, sizes.size)
        for name, numbers in vectors.items():
            self.add_module(f"encoder_{name}_input_proj", nn.Linear(numbers, sizes.size))
        self.encoder_1d_feature_pos_embed = nn.Embedding(1 + len(vectors), sizes.size)
        places = [map_places(height, width, sizes.size) for height, width in maps]
        self.register_buffer("places", torch.cat([torch.zeros(0, sizes.size), *places]), persistent=False)
        self.encoder = act_layers(sizes, sizes.encoder_layers)
        self.decoder = act_layers(sizes, sizes.decoder_layers, crosses=True)
        self.decoder_pos_embed = nn.Embedding(rows, sizes.size)
        self.action_head = nn.Linear(sizes.size, action_dim)

    def forward(
        self, points: torch.Tensor | None, vectors: Sequence[torch.Tensor], latent: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return normalised chunks ``(B, R, D)``.

        Args:
            points: ``(B, P)``, tokens of all maps; None without cameras.
            vectors: ``(B, S)`` each, normalised.
            latent: ``(B, latent)``, the style of a demonstration; None: 0, as when the policy acts.
        """
        parts = [self._module(name)(values) for name, values in zip(self.vectors, vectors, strict=True)]
        style = self.encoder_latent_input_proj
        first = style.bias.expand_as(parts[0]) if latent is None else style(latent)
        tokens = torch.stack([first, *parts], dim=1)
        if points is not None:
            tokens = torch.cat([tokens, points.unflatten(1, (-1, self.size))], dim=1)
        places = torch.cat([self.encoder_1d_feature_pos_embed.weight, self.places])
        for layer in self.encoder["layers"]:
            tokens = layer(tokens, places)
        memory, queries = self.encoder["norm"](tokens), self.decoder_pos_embed.weight
        values = torch.zeros_like(queries).expand(len(memory), -1, -1)
        for layer in self.decoder["layers"]:
            values = layer(values, queries, memory, places)
        return self.action_head(self.decoder["norm"](values))

    def _module(self, name: str) -> nn.Module:
        found: nn.Module = getattr(self, f"encoder_{name}_input_proj")
        return found

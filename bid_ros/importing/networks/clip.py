"""Transformers over the patches of an image or over a text: CLIP, named as in ``transformers``, and those of timm.

Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021, Section 3.1; Radford et al., "Learning Transferable
Visual Models From Natural Language Supervision", ICML 2021, Section 2.4: CLIP normalises before the first layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from bid_ros.learning.attention import attend, join_heads, split_heads

HEAD = 64  # numbers of a head, in all of the sizes from tiny to large
WIDEST, DEEPEST = 1024, 24  # numbers of a token, and layers, of the size large


class SelfAttention(nn.Module):  # type: ignore[misc]
    """Self-attention with one projection each for query, key and value."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(size, size), nn.Linear(size, size)
        self.v_proj, self.out_proj = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return the attended values ``(B, T, size)``."""
        layers = (self.q_proj, self.k_proj, self.v_proj)
        query, key, value = (split_heads(layer(values), self.heads) for layer in layers)
        return self.out_proj(join_heads(attend(query, key, value, mask)))


class Perceptron(nn.Module):  # type: ignore[misc]
    """Two layers with GELU between them, or with its quick approximation."""

    def __init__(self, size: int, hidden: int, quick: bool) -> None:
        super().__init__()
        self.fc1, self.fc2, self.quick = nn.Linear(size, hidden), nn.Linear(hidden, size), quick

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the layers' output."""
        hidden = self.fc1(values)
        hidden = hidden * torch.sigmoid(1.702 * hidden) if self.quick else nn.functional.gelu(hidden)
        return self.fc2(hidden)


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of the transformer, normalised before attention and before the perceptron."""

    def __init__(self, size: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(size, heads)
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.mlp = Perceptron(size, hidden, quick=True)

    def forward(self, values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return the layer's output ``(B, T, size)``."""
        values = values + self.self_attn(self.layer_norm1(values), mask)
        return values + self.mlp(self.layer_norm2(values))


class Layers(nn.Module):  # type: ignore[misc]
    """All layers of the transformer."""

    def __init__(self, size: int, hidden: int, heads: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(size, hidden, heads) for _ in range(layers))

    def forward(self, values: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return the output of the last layer."""
        for layer in self.layers:
            values = layer(values, mask)
        return values


class ImageEmbedding(nn.Module):  # type: ignore[misc]
    """Patches of an image and a class token, with their positions."""

    def __init__(self, size: int, patch: int, tokens: int) -> None:
        super().__init__()
        self.class_embedding = nn.Parameter(torch.zeros(size))
        self.patch_embedding = nn.Conv2d(3, size, patch, patch, bias=False)
        self.position_embedding = nn.Embedding(tokens, size)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return tokens ``(B, 1 + patches, size)``."""
        patches = self.patch_embedding(image).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(patches.shape[0], 1, -1)
        return torch.cat([first, patches], dim=1) + self.position_embedding.weight


class VisionTransformer(nn.Module):  # type: ignore[misc]
    """An image ``(B, 3, h, w)`` to its class token ``(B, size)`` after the last layer.

    ``post_layernorm`` is in the checkpoints. The token is taken before it.
    """

    def __init__(self, size: int, hidden: int, heads: int, layers: int, patch: int, tokens: int) -> None:
        super().__init__()
        self.embeddings = ImageEmbedding(size, patch, tokens)
        self.pre_layrnorm = nn.LayerNorm(size)  # spelled so in the checkpoints
        self.encoder = Layers(size, hidden, heads, layers)
        self.post_layernorm, self.features = nn.LayerNorm(size), size

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the class token."""
        return self.encoder(self.pre_layrnorm(self.embeddings(image)))[:, 0]


class TextEmbedding(nn.Module):  # type: ignore[misc]
    """Tokens with their positions."""

    def __init__(self, size: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, size)
        self.position_embedding = nn.Embedding(length, size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``(1, T, size)`` of int64 ``(1, T)``."""
        return self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]


class TextTransformer(nn.Module):  # type: ignore[misc]
    """Tokens int64 ``(1, T)`` of a text, the last of them its end, to the feature ``(1, size)`` of the end token.

    A token sees those before it only. So padding behind the end changes nothing, and none is needed.
    """

    def __init__(self, size: int, hidden: int, heads: int, layers: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.embeddings = TextEmbedding(size, vocabulary, length)
        self.encoder = Layers(size, hidden, heads, layers)
        self.final_layer_norm = nn.LayerNorm(size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the feature."""
        count = tokens.shape[1]
        mask = torch.full((count, count), -torch.inf).triu(1)
        return self.final_layer_norm(self.encoder(self.embeddings(tokens), mask))[:, -1]


@dataclass(frozen=True)
class PatchSizes:
    """Sizes of a transformer.

    Attributes:
        size: of a token.
        hidden: of the two layers behind the attention.
        layers: their number.
        patch: height and width of a patch, px.
        tokens: patches and the class token.
    """

    size: int
    hidden: int
    layers: int
    patch: int
    tokens: int


class PatchAttention(nn.Module):  # type: ignore[misc]
    """Self-attention: ``(B, T, size)`` to the same."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.heads = size // HEAD
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the attended values."""
        query, key, value = (split_heads(part, self.heads) for part in self.qkv(values).chunk(3, dim=-1))
        return self.proj(join_heads(attend(query, key, value)))


class PatchBlock(nn.Module):  # type: ignore[misc]
    """A layer of the transformer, normalised before attention and before the perceptron."""

    def __init__(self, size: int, hidden: int, epsilon: float, quick: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size, eps=epsilon), nn.LayerNorm(size, eps=epsilon)
        self.attn, self.mlp = PatchAttention(size), Perceptron(size, hidden, quick)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        values = values + self.attn(self.norm1(values))
        return values + self.mlp(self.norm2(values))


class PatchTransformer(nn.Module):  # type: ignore[misc]
    """An image ``(B, 3, h, w)`` to its normalised class token ``(B, size)``.

    Args:
        sizes: of the network.
        clip: normalise before the first layer, and no bias of the patches.
        quick: the quick approximation of GELU, as the weights of OpenAI were trained with.

    Attributes:
        features: size.
    """

    def __init__(self, sizes: PatchSizes, clip: bool, quick: bool = False) -> None:
        super().__init__()
        size, epsilon = sizes.size, 1e-5 if clip else 1e-6
        self.features = size
        self.cls_token = nn.Parameter(torch.zeros(1, 1, size))
        self.pos_embed = nn.Parameter(torch.zeros(1, sizes.tokens, size))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, size, sizes.patch, sizes.patch, bias=not clip)})
        self.norm_pre = nn.LayerNorm(size, eps=epsilon) if clip else nn.Identity()
        self.blocks = nn.ModuleList(PatchBlock(size, sizes.hidden, epsilon, quick) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(size, eps=epsilon)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the class token."""
        patches = self.patch_embed["proj"](image).flatten(2).transpose(1, 2)
        first = self.cls_token.expand(patches.shape[0], -1, -1)
        values = self.norm_pre(torch.cat([first, patches], dim=1) + self.pos_embed)
        for block in self.blocks:
            values = block(values)
        return self.norm(values)[:, 0]


def sizes_of(weights: Mapping[str, torch.Tensor]) -> PatchSizes | None:
    """Return the sizes that the weights of such a network have. None: they are those of another or a larger one.

    Sizes are taken from tensors that are there, so that a small file never asks for a large network.
    """
    names = ("patch_embed.proj.weight", "pos_embed", "blocks.0.mlp.fc1.weight")
    found = [weights.get(name) for name in names]
    patches, places, first = found
    if patches is None or places is None or first is None:
        return None
    if [item.ndim for item in (patches, places, first)] != [4, 3, 2]:
        return None
    hidden, size = first.shape
    patch, layers = patches.shape[2], len({name.split(".")[1] for name in weights if name.startswith("blocks.")})
    if patches.shape != (size, 3, patch, patch) or patch < 1 or size > WIDEST or layers > DEEPEST:
        return None
    return PatchSizes(size, hidden, layers, patch, places.shape[1])

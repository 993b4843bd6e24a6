"""The two halves of CLIP: image to feature, and text tokens to feature.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021, Section 2.4. The
names of tensors are those of ``transformers``.
"""

import torch
from torch import nn

from bid_ros.importing.networks.attention import attend, join_heads, split_heads


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


class ClipPerceptron(nn.Module):  # type: ignore[misc]
    """Two layers with the quick approximation of GELU between them."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(size, hidden), nn.Linear(hidden, size)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the layers' output."""
        hidden = self.fc1(values)
        return self.fc2(hidden * torch.sigmoid(1.702 * hidden))


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of the transformer, normalised before attention and before the perceptron."""

    def __init__(self, size: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(size, heads)
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.mlp = ClipPerceptron(size, hidden)

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
        self.post_layernorm = nn.LayerNorm(size)

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

"""From the last map of a residual network to a feature: the ways of the published UMI.

Chi et al., "Universal Manipulation Interface", RSS 2024. The names of tensors are those of its checkpoints.
"""

from typing import Final

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.networks.attention import attend, join_heads, split_heads

HEAD: Final = 64  # numbers of a head of the attention
WAYS: Final = ("avg", "max", "soft_attention", "spatial_embedding", "attention_pool_2d")


class AttentionPool(nn.Module):  # type: ignore[misc]
    """The mean of a map looks at all of its places (Radford et al., ICML 2021, Section 2.4).

    Maps ``(B, channels, h, w)`` to ``(B, channels)``.
    """

    def __init__(self, places: int, channels: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.zeros(places + 1, channels))
        self.k_proj, self.q_proj = nn.Linear(channels, channels), nn.Linear(channels, channels)
        self.v_proj, self.c_proj = nn.Linear(channels, channels), nn.Linear(channels, channels)
        self.heads = channels // HEAD

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return the feature."""
        values = maps.flatten(2).transpose(1, 2)
        values = torch.cat([values.mean(dim=1, keepdim=True), values], dim=1) + self.positional_embedding
        query, key, value = (
            split_heads(layer(part), self.heads)
            for layer, part in ((self.q_proj, values[:, :1]), (self.k_proj, values), (self.v_proj, values))
        )
        return self.c_proj(join_heads(attend(query, key, value)))[:, 0]


class Pool(nn.Module):  # type: ignore[misc]
    """A way from a map ``(B, channels, h, w)`` to a feature ``(B, channels)``.

    Args:
        way: ``avg`` and ``max``: over all places. ``soft_attention``: a learned weight of each place.
            ``spatial_embedding``: learned weights of each place and channel. ``attention_pool_2d``:
            :class:`AttentionPool`.
        places: h w.
        channels: of the map.

    Raises:
        BidError: there is no such way.
    """

    def __init__(self, way: str, places: int, channels: int) -> None:
        super().__init__()
        self.way = way
        if way not in WAYS:
            raise BidError(f"feature_aggregation is '{way}'; valid for a residual network are {', '.join(WAYS)}")
        if way == "soft_attention":
            self.attention = nn.Sequential(nn.Linear(channels, 1, bias=False), nn.Softmax(dim=1))
        elif way == "spatial_embedding":
            self.spatial_embedding = nn.Parameter(torch.zeros(places, channels))
        elif way == "attention_pool_2d":
            self.attention_pool_2d = AttentionPool(places, channels)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return the feature."""
        if self.way == "attention_pool_2d":
            return self.attention_pool_2d(maps)
        values = maps.flatten(2).transpose(1, 2)
        if self.way == "max":
            return values.amax(dim=1)
        if self.way == "soft_attention":
            return (values * self.attention(values)).sum(dim=1)
        return (values * self.spatial_embedding if self.way == "spatial_embedding" else values).mean(dim=1)


class PooledMap(nn.Module):  # type: ignore[misc]
    """A residual network and a pool, which several cameras may share: ``(B, 3, h, w)`` to ``(B, features)``."""

    def __init__(self, trunk: nn.Module, pool: Pool, features: int) -> None:
        super().__init__()
        self.trunk, self.pool, self.features = trunk, pool, features

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the feature."""
        return self.pool(self.trunk(image))

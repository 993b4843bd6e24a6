"""Residual networks for images, and the ways from their last map to a feature.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. The layout and the names of tensors are those of
torchvision. ``trunk`` numbers them as a sequence, without the last pooling and the classifier, as LeRobot and robomimic
do. The pools are those of the published UMI (Chi et al., "Universal Manipulation Interface", RSS 2024).
"""

from typing import Final

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.attention import attend, join_heads, split_heads

LAYERS: Final = {
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
}
DEEP: Final = ("resnet50", "resnet101", "resnet152")  # with three convolutions a block
CHANNELS_A_GROUP: Final = 16
HEAD: Final = 64  # numbers of a head of the attention
# Patterns of torchvision's names, and ours, where the network is a sequence.
TORCHVISION: Final = (
    (r"^conv1\.", "0."),
    (r"^bn1\.", "1."),
    *((rf"^layer{level}\.", f"{3 + level}.") for level in range(1, 5)),
)
WAYS: Final = ("avg", "max", "soft_attention", "spatial_embedding", "attention_pool_2d")


def normalisation(channels: int, groups: bool) -> nn.Module:
    """Return group normalisation with 16 channels a group, or batch normalisation."""
    return nn.GroupNorm(channels // CHANNELS_A_GROUP, channels) if groups else nn.BatchNorm2d(channels)


class ResnetBlock(nn.Module):  # type: ignore[misc]
    """Convolutions and a way around them: ``(B, inputs, h, w)`` to ``(B, outputs, h / stride, w / stride)``.

    Args:
        inputs: channels.
        width: channels inside.
        stride: of the first convolution of 3 x 3, as in torchvision.
        groups: see :func:`normalisation`.
        deep: three convolutions with four times as many channels at the end; else two.
        dilation: of the convolutions of 3 x 3.

    Attributes:
        outputs: channels.
    """

    def __init__(
        self, inputs: int, width: int, stride: int, groups: bool, deep: bool = False, dilation: int = 1
    ) -> None:
        super().__init__()
        self.outputs = 4 * width if deep else width
        sizes = [(inputs, width, 3, stride), (width, width, 3, 1)]
        if deep:
            sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, self.outputs, 1, 1)]
        self.numbers = range(1, len(sizes) + 1)
        for number, (inside, outside, kernel, step) in zip(self.numbers, sizes, strict=True):
            wide = dilation if kernel > 1 else 1
            convolution = nn.Conv2d(inside, outside, kernel, step, wide * (kernel // 2), wide, bias=False)
            self.add_module(f"conv{number}", convolution)
            self.add_module(f"bn{number}", normalisation(outside, groups))
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != self.outputs:
            convolution = nn.Conv2d(inputs, self.outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, normalisation(self.outputs, groups))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        hidden = values
        for number in self.numbers:
            hidden = hidden if number == 1 else torch.relu(hidden)
            hidden = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(hidden))
        return torch.relu(hidden + (values if self.downsample is None else self.downsample(values)))


def trunk(name: str, groups: bool, dilated: bool = False) -> tuple[nn.Sequential, int]:
    """Return a network up to its last feature map, and the map's channels.

    Args:
        name: ``resnet18`` and so on.
        groups: group normalisation in place of batch normalisation.
        dilated: the last level keeps the resolution of the one before, and its convolutions are dilated instead.

    Raises:
        BidError: there is no such network, or it cannot be dilated.
    """
    if name not in LAYERS:
        raise BidError(f"vision backbone is '{name}'; valid are {', '.join(LAYERS)}")
    if dilated and name not in DEEP:
        raise BidError(f"vision backbone '{name}' is dilated; valid for that are {', '.join(DEEP)}")
    parts: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        normalisation(64, groups),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for level, count in enumerate(LAYERS[name]):
        width, blocks, wide = 64 * 2**level, [], dilated and level == len(LAYERS[name]) - 1
        for index in range(count):
            stride, dilation = 2 if level and not index and not wide else 1, 2 if wide and index else 1
            blocks.append(ResnetBlock(inputs, width, stride, groups, name in DEEP, dilation))
            inputs = blocks[-1].outputs
        parts.append(nn.Sequential(*blocks))
    return nn.Sequential(*parts), inputs


def map_size(height: int, width: int, dilated: bool = False) -> tuple[int, int]:
    """Return height and width of the last feature map: five halvings, rounded up; of a dilated network four."""
    for _ in range(4 if dilated else 5):
        height, width = (height + 1) // 2, (width + 1) // 2
    return height, width


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

"""Residual networks for images, He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.

The layout and the names of tensors are those of torchvision. ``trunk`` numbers them as a sequence, without the last
pooling and the classifier, as LeRobot and robomimic do.
"""

from typing import Final

import torch
from torch import nn

from bid_ros.core.errors import BidError

LAYERS: Final = {
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
}
DEEP: Final = ("resnet50", "resnet101", "resnet152")  # with three convolutions a block
CHANNELS_A_GROUP: Final = 16


def normalisation(channels: int, groups: bool) -> nn.Module:
    """Return group normalisation with 16 channels a group, or batch normalisation."""
    return nn.GroupNorm(channels // CHANNELS_A_GROUP, channels) if groups else nn.BatchNorm2d(channels)


class BasicBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions and a way around them: ``(B, inputs, h, w)`` to ``(B, width, h / stride, w / stride)``."""

    expansion: Final = 1

    def __init__(self, inputs: int, width: int, stride: int, groups: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = normalisation(width, groups)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = normalisation(width, groups)
        self.downsample = _shortcut(inputs, width, stride, groups)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        hidden = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(values)))))
        return torch.relu(hidden + (values if self.downsample is None else self.downsample(values)))


class Bottleneck(nn.Module):  # type: ignore[misc]
    """Three convolutions and a way around them. The stride is in the middle one, as in torchvision."""

    expansion: Final = 4

    def __init__(self, inputs: int, width: int, stride: int, groups: bool) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = normalisation(width, groups)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = normalisation(width, groups)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = normalisation(outputs, groups)
        self.downsample = _shortcut(inputs, outputs, stride, groups)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        hidden = torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(values))))))
        hidden = self.bn3(self.conv3(hidden))
        return torch.relu(hidden + (values if self.downsample is None else self.downsample(values)))


def trunk(name: str, groups: bool) -> tuple[nn.Sequential, int]:
    """Return a network up to its last feature map, and the map's channels.

    Args:
        name: ``resnet18`` and so on.
        groups: group normalisation in place of batch normalisation.

    Raises:
        BidError: there is no such network.
    """
    if name not in LAYERS:
        raise BidError(f"vision backbone is '{name}'; valid are {', '.join(LAYERS)}")
    block = Bottleneck if name in DEEP else BasicBlock
    parts: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        normalisation(64, groups),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for level, count in enumerate(LAYERS[name]):
        width, blocks = 64 * 2**level, []
        for index in range(count):
            blocks.append(block(inputs, width, 2 if level and not index else 1, groups))
            inputs = width * block.expansion
        parts.append(nn.Sequential(*blocks))
    return nn.Sequential(*parts), inputs


def map_size(height: int, width: int) -> tuple[int, int]:
    """Return height and width of the last feature map: five halvings, rounded up."""
    for _ in range(5):
        height, width = (height + 1) // 2, (width + 1) // 2
    return height, width


def _shortcut(inputs: int, outputs: int, stride: int, groups: bool) -> nn.Module | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), normalisation(outputs, groups))

"""Residual networks, against plain definitions."""

import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.networks.resnet import LAYERS, map_size, trunk


@pytest.mark.parametrize("name", LAYERS)
def test_a_trunk_has_the_layout_of_torchvision(name):
    """Numbers of parameters as published for ImageNet, less the classifier with its 1000 outputs."""
    published = {"resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032}
    published |= {"resnet101": 44_549_160, "resnet152": 60_192_808}
    with torch.device("meta"):
        network, channels = trunk(name, groups=False)
    # On the device "meta" PyTorch for CUDA imports triton, which ends a process that has Mesa's LLVM, too.
    maps = network.to_empty(device="cpu").eval()(torch.zeros(1, 3, 97, 64))
    assert tuple(maps.shape) == (1, channels, *map_size(97, 64))
    assert sum(value.numel() for value in network.parameters()) == published[name] - 1000 * (channels + 1)


def test_an_unknown_trunk_is_refused():
    with pytest.raises(BidError, match="vision backbone is 'vit'; valid are resnet18"):
        trunk("vit", groups=True)

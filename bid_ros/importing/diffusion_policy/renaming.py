"""Names of tensors in published checkpoints, and those of our networks."""

import re
from collections.abc import Mapping
from typing import Final

import torch

Tensors = Mapping[str, torch.Tensor]
# Of the U-Net: resampling and the two blocks have one level more than LeRobot's.
UNET: Final = (
    (r"(down_modules|up_modules)\.(\d+)\.2\.conv\.", r"\1.\2.2."),
    (r"\.blocks\.0\.", ".conv1."),
    (r"\.blocks\.1\.", ".conv2."),
)
# Of robomimic's encoder of an image.
KEYPOINTS: Final = (
    (r"^nets\.0\.nets\.", "backbone."),
    (r"^nets\.1\.", "pool."),
    (r"^nets\.3\.", "out."),
)
# Of torchvision's residual network, which has names where ours is a sequence.
RESNET: Final = (
    (r"^conv1\.", "backbone.0."),
    (r"^bn1\.", "backbone.1."),
    *((rf"^layer{level}\.", f"backbone.{3 + level}.") for level in range(1, 5)),
)
# Not weights: masks that are computed here, a temperature of 1, and a parameter without numbers.
LEFT_OUT: Final = ("mask", "memory_mask", "pool.temperature", "_dummy_variable")


def renamed(tensors: Tensors, patterns: tuple[tuple[str, str], ...] = ()) -> dict[str, torch.Tensor]:
    """Return the tensors by our names, without those that are no weights."""
    found = {}
    for name, value in tensors.items():
        ours = name
        for pattern, replacement in patterns:
            ours = re.sub(pattern, replacement, ours)
        if ours not in LEFT_OUT:
            found[ours] = value
    return found

"""The tensors of published checkpoints: normalisers, their names beside ours, and the denoiser's.

A normaliser is ``y = x scale + offset``, value by value.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import Checkpoint
from bid_ros.importing.networks.resnet import TORCHVISION
from bid_ros.importing.tensors import check_prefixes, fill, without_prefix
from bid_ros.importing.tensors import renamed as by_our_names
from bid_ros.policy.normalise import LinearNormaliser

PREFIX = "normalizer.params_dict."
Tensors = Mapping[str, torch.Tensor]
Array = NDArray[np.float64]
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
RESNET: Final = tuple((theirs, f"backbone.{ours}") for theirs, ours in TORCHVISION)
# Not weights: masks that are computed here, a temperature of 1, and a parameter without numbers.
LEFT_OUT: Final = ("mask", "memory_mask", "pool.temperature", "_dummy_variable")
MODEL: Final = "model."


def scale_and_offset(tensors: Tensors, name: str, size: int, where: str) -> tuple[Array, Array]:
    """Return scale and offset ``(S,)`` of a feature.

    Raises:
        BidError: one is missing, has another size, is not finite, or the scale is not above 0.
    """
    found = []
    for part in ("scale", "offset"):
        tensor = tensors.get(f"{PREFIX}{name}.{part}")
        if tensor is None:
            raise BidError(f"{where} lacks the tensor '{PREFIX}{name}.{part}'; valid are {size} numbers")
        values = tensor.double().flatten().numpy()
        if values.size not in (1, size):
            raise BidError(f"{where}: tensor '{PREFIX}{name}.{part}' has {values.size} numbers; valid are {size} or 1")
        good = np.isfinite(values).all() and (part == "offset" or (values > 0).all())
        if not good:
            valid = "finite numbers above 0" if part == "scale" else "finite numbers"
            raise BidError(f"{where}: tensor '{PREFIX}{name}.{part}' is {values.tolist()}; valid are {valid}")
        found.append(np.broadcast_to(values, (size,)))
    return found[0], found[1]


def normaliser(tensors: Tensors, name: str, size: int, where: str) -> LinearNormaliser:
    """Return the normaliser of a vector. Raises BidError as :func:`scale_and_offset`."""
    scale, offset = scale_and_offset(tensors, name, size, where)
    return LinearNormaliser((-1 - offset) / scale, (1 - offset) / scale)


def action_spread(tensors: Tensors, action: LinearNormaliser) -> Array:
    """Return the standard deviation of the actions: the file's own, or that of an even distribution over the range."""
    own = tensors.get(f"{PREFIX}action.input_stats.std")
    if own is not None and own.numel() == action.minimum.size and bool(own.isfinite().all()):
        return np.asarray(own.double().flatten().numpy())
    return np.asarray((action.maximum - action.minimum) / np.sqrt(12))


def renamed(tensors: Tensors, patterns: tuple[tuple[str, str], ...] = ()) -> dict[str, torch.Tensor]:
    """Return the tensors by our names, without those that are no weights."""
    return {name: value for name, value in by_our_names(tensors, patterns).items() if name not in LEFT_OUT}


def fill_denoiser(checkpoint: Checkpoint, denoiser: nn.Module, transformer: bool) -> None:
    """Put the tensors of the U-Net or transformer into it. Raises BidError as :func:`fill`."""
    weights = without_prefix(dict(checkpoint.tensors), MODEL)
    fill(denoiser, renamed(weights, () if transformer else UNET), str(checkpoint.path), MODEL)


def check_all_read(checkpoint: Checkpoint, prefixes: tuple[str, ...]) -> None:
    """Raise BidError if the checkpoint has a tensor that belongs to nothing; ``prefixes``: those of the encoder."""
    tensors = {name: value for name, value in checkpoint.tensors.items() if value.numel() > 0}
    check_prefixes(tensors, (MODEL, PREFIX, *prefixes), str(checkpoint.path))

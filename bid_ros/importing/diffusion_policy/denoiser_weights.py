"""Parts that the policies of the published projects share."""

from typing import Any, Final

from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import Checkpoint
from bid_ros.importing.diffusion_policy.encoders import Observing
from bid_ros.importing.diffusion_policy.normalisers import PREFIX
from bid_ros.importing.diffusion_policy.renaming import UNET, renamed
from bid_ros.importing.tensors import fill, without_prefix

MODEL: Final = "model."


def fill_denoiser(checkpoint: Checkpoint, denoiser: nn.Module, transformer: bool) -> None:
    """Put the tensors of the U-Net or transformer into it. Raises BidError as :func:`fill`."""
    weights = without_prefix(dict(checkpoint.tensors), MODEL)
    fill(denoiser, renamed(weights, () if transformer else UNET), str(checkpoint.path), MODEL)


def check_all_read(checkpoint: Checkpoint, observing: Observing) -> None:
    """Raise BidError if the checkpoint has a tensor that belongs to nothing."""
    read = (MODEL, PREFIX, *observing.prefixes)
    for name, value in checkpoint.tensors.items():
        if not name.startswith(read) and value.numel() > 0:
            raise BidError(f"{checkpoint.path} has the tensor '{name}', which the configuration has no place for")


def read_action_dim(shape_meta: Any, where: str) -> int:
    """Return D. Raises BidError if ``shape_meta`` says nothing of it."""
    action = shape_meta.get("action") if isinstance(shape_meta, dict) else None
    shape = action.get("shape") if isinstance(action, dict) else None
    if not isinstance(shape, list) or len(shape) != 1 or type(shape[0]) is not int or shape[0] < 1:
        raise BidError(f"{where}.shape_meta.action.shape is {shape!r}; valid is [D]")
    return int(shape[0])

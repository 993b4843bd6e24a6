"""Normalisers of the published Diffusion Policy: ``y = x scale + offset``, value by value."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.policy.normalise import LinearNormaliser

PREFIX = "normalizer.params_dict."
Tensors = Mapping[str, torch.Tensor]
Array = NDArray[np.float64]


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

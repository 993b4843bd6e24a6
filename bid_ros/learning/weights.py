"""Reads the weights of an exported graph back into the network that it was made from."""

from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from bid_ros.core.errors import BundleError

_OF_NORMALISATION = ("onnx::Mul_", "onnx::Add_")


def read_weights(path: Path, network: nn.Module, prefix: str = "") -> None:
    """Load the weights of a graph, in place.

    An exported graph keeps the name of each weight, except of group normalisations: their factors and offsets have
    numbers instead, in the order in which they are used, which is the order of the network's modules.

    Args:
        path: the graph, as :mod:`bid_ros.learning.graphs` wrote it.
        network: network of the same sizes.
        prefix: of the names in the graph.

    Raises:
        BundleError: a weight is missing or has another shape.
    """
    tensors = {item.name.removesuffix(".half"): item for item in onnx.load(path).graph.initializer}
    unnamed = [item for name, item in tensors.items() if name.startswith(_OF_NORMALISATION)]
    unnamed.sort(key=lambda item: int(item.name.removesuffix(".half").rpartition("_")[2]))
    values: dict[str, NDArray[np.float32]] = {}
    for name, wanted in network.state_dict().items():
        found = tensors.get(prefix + name)
        if found is None and unnamed:
            found = unnamed.pop(0)
        array = None if found is None else numpy_helper.to_array(found).astype(np.float32)
        if array is None or array.size != wanted.numel():
            found_is = "is missing" if array is None else f"has shape {array.shape}"
            raise BundleError(f"{path.name}: weight '{name}' {found_is}; the network needs {tuple(wanted.shape)}")
        values[name] = array.reshape(tuple(wanted.shape))
    network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in values.items()})

"""Reads the weights of an exported graph back into the network that it was made from."""

from pathlib import Path

import numpy as np
import onnx
import torch
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
    numbered = {
        f"{name}.{part}"
        for name, module in network.named_modules()
        if isinstance(module, nn.GroupNorm)
        for part in ("weight", "bias")
    }
    values: dict[str, torch.Tensor] = {}
    for name, wanted in network.state_dict().items():
        found = unnamed.pop(0) if name in numbered and unnamed else tensors.get(prefix + name)
        array = None if found is None else numpy_helper.to_array(found).astype(np.float32)
        if array is not None and name in numbered:
            array = array.reshape(-1)  # an axis for each of the others that it is spread over
        if array is None or array.shape != tuple(wanted.shape):
            found_is = "is missing" if array is None else f"has shape {array.shape}"
            raise BundleError(f"{path.name}: weight '{name}' {found_is}; the network needs {tuple(wanted.shape)}")
        values[name] = torch.from_numpy(array.copy())
    if unnamed:
        raise BundleError(f"{path.name} has {len(unnamed)} weights more than the network")
    network.load_state_dict(values)

"""Reads the weights of an exported graph back into the network that it was made from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import Task
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.policy.base import Bundle, Graphs
from bid_ros.policy.bundle_fields import DIFFUSION
from bid_ros.policy.diffusion.policy import ENCODING

_OF_NORMALISATION = ("onnx::Mul_", "onnx::Add_")


def bundle_networks(bundle: Bundle, task: Task) -> dict[str, PolicyNetworks]:
    """Return the networks of a bundle with the same weights: ``strong`` and, where there is one, ``weak``.

    Raises:
        BundleError: the bundle was not written by ``bid policy export``.
    """
    trained, found = training_of(bundle), {}
    for strength, files in (("strong", bundle.strong), ("weak", bundle.weak)):
        if files is not None:
            found[strength] = PolicyNetworks(task, trained.network).eval()
            read_policy(files, found[strength])
    return found


def training_of(bundle: Bundle) -> TrainConfig:
    """Return how a diffusion policy was trained.

    Raises:
        BundleError: the bundle is of another family, has a space, or was not written by ``bid policy export``.
    """
    if bundle.family != DIFFUSION:
        raise BundleError(f"bundle {bundle.path} is of the family {bundle.family}; valid is {DIFFUSION}")
    if bundle.space is not None:
        raise BundleError(
            f"bundle {bundle.path} has a space, as imported policies do: its weights fit no network of bid train, so "
            "they cannot be read back; import it again with --sampling-steps for fewer denoising steps"
        )
    if "training" not in bundle.provenance:
        raise BundleError(
            f"bundle {bundle.path} does not say how it was trained; valid is one that bid policy export wrote"
        )
    return parse_settings(TrainConfig, bundle.provenance["training"], f"bundle {bundle.path}: training")


def read_policy(files: Graphs, networks: PolicyNetworks) -> None:
    """Load the weights of a policy's graphs into its encoder and denoiser, in place. Raises as :func:`read_weights`."""
    read_weights([files[role] for role in ENCODING if role in files], networks.encoder, "encoder.")
    read_weights([files["denoiser"]], networks.denoiser)


def read_weights(paths: Sequence[Path], network: nn.Module, prefix: str = "") -> None:
    """Load the weights of graphs that one network was exported to, in place.

    An exported graph keeps the name of each weight, except of group normalisations: their factors and offsets have
    numbers instead, in the order in which they are used, which is the order of the network's modules.

    Args:
        paths: the graphs, as :mod:`bid_ros.learning.graphs` wrote them. One of them has all normalisations.
        network: network of the same sizes.
        prefix: of the names in the graph.

    Raises:
        BundleError: a weight is missing or has another shape.
    """
    initializers = (item for path in paths for item in onnx.load(path).graph.initializer)
    tensors, where = (
        {item.name.removesuffix(".half"): item for item in initializers},
        ", ".join(path.name for path in paths),
    )
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
            raise BundleError(f"{where}: weight '{name}' {found_is}; the network needs {tuple(wanted.shape)}")
        values[name] = torch.from_numpy(array.copy())
    if unnamed:
        raise BundleError(f"{where} has {len(unnamed)} weights more than the network")
    network.load_state_dict(values)

"""The families of policies that can be trained: their networks, written to graphs and read back from them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import Task
from bid_ros.learning.act.graphs import compare_act, write_act
from bid_ros.learning.act.network import ActNetworks
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.graphs import compare, encoding_roles, round_weights, store_half, write_diffusion
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.vqbet.graphs import compare_vqbet, write_vqbet
from bid_ros.learning.vqbet.network import VqBetNetworks
from bid_ros.policy.act.settings import ActSettings, member_role
from bid_ros.policy.base import Bundle, Graphs
from bid_ros.policy.bundle import DIFFUSION
from bid_ros.policy.diffusion.policy import ENCODING
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.vqbet.codes import VqBetSettings

MOST_STEPS_OF_ONE_GRAPH: Final = 8  # more take long to compile
_SAMPLED_BY: Final = {"diffusion": "sampling_steps", "vqbet": "temperature"}  # of others nothing is drawn
Networks: TypeAlias = PolicyNetworks | VqBetNetworks | ActNetworks
_OF_NORMALISATION = ("onnx::Mul_", "onnx::Add_")


def new_networks(task: Task, config: TrainConfig) -> Networks:
    """Return untrained networks. Raises BidError if the sizes do not fit the task."""
    if config.family == "act":
        return ActNetworks(task, config.network, config.act)
    if config.family == "vqbet":
        return VqBetNetworks(task, config.network, config.vqbet)
    return PolicyNetworks(task, config.network, config.diffusion.clean_step)


def sampled_as(config: TrainConfig, sampling_steps: int | None, temperature: float | None) -> TrainConfig:
    """Return a configuration whose policy is sampled in another way; None: as it was.

    Raises:
        BidError: a value is outside its range, or for another family.
    """
    changes = _changes(config.family, sampling_steps, temperature)
    section: Any = getattr(config, config.family)
    return replace(config, **{config.family: replace(section, **changes)})


def sampled_by(bundle: Bundle, sampling_steps: int | None, temperature: float | None) -> Any:
    """Return the settings of a bundle with other values; None: as it is. Raises as :func:`sampled_as`."""
    return replace(bundle.settings, **_changes(bundle.family, sampling_steps, temperature))


def _changes(family: str, sampling_steps: int | None, temperature: float | None) -> dict[str, Any]:
    given = {"sampling_steps": sampling_steps, "temperature": temperature}
    changes = {name: value for name, value in given.items() if value is not None}
    for name in changes:
        if name != _SAMPLED_BY.get(family):
            raise BidError(f"{name} is given for a policy of the family {family}, which has none; leave it out")
    return changes


def bundle_settings(config: TrainConfig, members: int = 1) -> DiffusionConfig | VqBetSettings | ActSettings:
    """Return the family's section of ``bundle.yaml``. ``members``: runs whose policies are candidates."""
    if config.family == "act":
        return ActSettings(members)
    if config.family == "vqbet":
        return VqBetSettings(config.vqbet.codes, config.vqbet.temperature)
    return config.diffusion


def write_graphs(
    networks: Networks,
    out: Path,
    task: Task,
    sampling: Any,
    strength: str,
    half: bool = True,
    tolerance: float = 1e-4,
    member: int = 1,
) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of one policy; return their file names by role, and how they differ from PyTorch.

    A diffusion policy of few steps has one graph for all of them (``sampler``).

    Args:
        networks: of the policy. With ``half`` their weights are rounded, in place.
        out: folder of the bundle.
        task: of the policy.
        sampling: how the policy is sampled, the settings of its family.
        strength: ``strong`` or ``weak``.
        half: store weights as float16.
        tolerance: largest difference, normalised units; ten times that for a whole chunk.
        member: number of a policy among several, which its roles end in from the second on.

    Raises:
        BundleError: a graph differs from PyTorch by more than ``tolerance``.
    """
    if isinstance(networks, ActNetworks):
        roles = []
    elif isinstance(networks, VqBetNetworks):
        roles = ["decoder"]
    else:
        roles = ["denoiser", *["sampler"] * (sampling.sampling_steps <= MOST_STEPS_OF_ONE_GRAPH)]
    names = {role: f"{strength}_{member_role(role, member)}.onnx" for role in (*encoding_roles(task), *roles)}
    files, runtime = {role: out / name for role, name in names.items()}, build_runtime("onnx")
    if half:
        round_weights(networks)
    if isinstance(networks, ActNetworks):
        write_act(networks, task, files)
    elif isinstance(networks, VqBetNetworks):
        write_vqbet(networks, task, files)
    else:
        write_diffusion(networks, task, sampling, files)
    if half:
        for path in files.values():
            store_half(path)
    if isinstance(networks, ActNetworks):
        differences = compare_act(networks, files, runtime, task)
    elif isinstance(networks, VqBetNetworks):
        differences = compare_vqbet(networks, files, runtime, task)
    else:
        differences = compare(networks, files, runtime, task, sampling)
    _check(differences, strength, tolerance)
    named = {member_role(role, member): name for role, name in names.items()}
    return named, {member_role(role, member): value for role, value in differences.items()}


def _check(differences: Mapping[str, float], strength: str, tolerance: float) -> None:
    for part, value in differences.items():
        limit = 10 * tolerance if part == "chunk" else tolerance
        if not value <= limit:
            problem = f"{strength} policy: {part} differs from PyTorch by {value:.2e}"
            raise BundleError(f"{problem}; valid is up to {limit:.0e}")


def bundle_networks(bundle: Bundle, task: Task) -> dict[str, PolicyNetworks]:
    """Return the networks of a bundle with the same weights: ``strong`` and, where there is one, ``weak``.

    Raises:
        BundleError: the bundle was not written by ``bid policy export``.
    """
    trained, found = training_of(bundle), {}
    for strength, files in (("strong", bundle.strong), ("weak", bundle.weak)):
        if files is not None:
            found[strength] = PolicyNetworks(task, trained.network, bundle.settings.clean_step).eval()
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

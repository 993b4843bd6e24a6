"""The families of policies that can be trained: their networks, their graphs, and how they are sampled."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.task import Task
from bid_ros.learning.compare import compare
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.graphs import (
    SamplerGraph,
    encoding_roles,
    round_weights,
    store_half,
    write_denoiser,
    write_encoding,
    write_sampler,
)
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.vqbet.graphs import write_vqbet
from bid_ros.learning.vqbet.policy import VqBetNetworks
from bid_ros.policy.base import Bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.vqbet.codes import VqBetSettings

MOST_STEPS_OF_ONE_GRAPH: Final = 8  # more take long to compile
_SAMPLED_BY: Final = {"diffusion": "sampling_steps", "vqbet": "temperature"}


def new_networks(task: Task, config: TrainConfig) -> PolicyNetworks | VqBetNetworks:
    """Return untrained networks. Raises BidError if the sizes do not fit the task."""
    if config.family == "vqbet":
        return VqBetNetworks(task, config.network, config.vqbet)
    return PolicyNetworks(task, config.network)


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


def bundle_settings(config: TrainConfig) -> DiffusionConfig | VqBetSettings:
    """Return the family's section of ``bundle.yaml``."""
    if config.family == "vqbet":
        return VqBetSettings(config.vqbet.codes, config.vqbet.temperature)
    return config.diffusion


def write_policy(
    networks: PolicyNetworks | VqBetNetworks,
    out: Path,
    task: Task,
    config: TrainConfig,
    strength: str,
    half: bool = True,
    tolerance: float = 1e-4,
) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of one policy of any family. Arguments, result and errors are those of :func:`write_graphs`."""
    if isinstance(networks, PolicyNetworks):
        return write_graphs(networks, out, task, config.diffusion, strength, half, tolerance)
    names, differences = write_vqbet(networks, out, task, strength, half)
    _check(differences, strength, tolerance)
    return names, differences


def write_graphs(
    networks: PolicyNetworks,
    out: Path,
    task: Task,
    diffusion: DiffusionConfig,
    strength: str,
    half: bool = True,
    tolerance: float = 1e-4,
) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of one policy; return their file names by role, and how they differ from PyTorch.

    A policy of few steps has one graph for all of them (``sampler``).

    Args:
        networks: of the policy. With ``half`` their weights are rounded, in place.
        out: folder of the bundle.
        task: of the policy.
        diffusion: how the policy is sampled.
        strength: ``strong`` or ``weak``.
        half: store weights as float16.
        tolerance: largest difference, normalised units; ten times that for a whole chunk.

    Raises:
        BundleError: a graph differs from PyTorch by more than ``tolerance``.
    """
    whole = diffusion.sampling_steps <= MOST_STEPS_OF_ONE_GRAPH
    condition = networks.encoder.condition
    names = {part: f"{strength}_{part}.onnx" for part in (*encoding_roles(task), "denoiser", *["sampler"] * whole)}
    files = {part: out / name for part, name in names.items()}
    if half:
        round_weights(networks)
    write_encoding(networks.encoder, task, files)
    write_denoiser(networks.denoiser, task, condition, files["denoiser"])
    if whole:
        write_sampler(SamplerGraph(networks.denoiser, diffusion), task, condition, files["sampler"])
    if half:
        for path in files.values():
            store_half(path)
    differences = compare(networks, files, build_runtime("onnx"), task, diffusion)
    _check(differences, strength, tolerance)
    return names, differences


def _check(differences: Mapping[str, float], strength: str, tolerance: float) -> None:
    for part, value in differences.items():
        limit = 10 * tolerance if part == "chunk" else tolerance
        if not value <= limit:
            problem = f"{strength} policy: {part} differs from PyTorch by {value:.2e}"
            raise BundleError(f"{problem}; valid is up to {limit:.0e}")

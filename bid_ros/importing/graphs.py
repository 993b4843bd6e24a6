"""Imported networks as ONNX graphs, compared with PyTorch. The contract: :mod:`bid_ros.policy.diffusion.policy`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.errors import BundleError
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.policy import Case, ImportedPolicy
from bid_ros.learning.graphs import export_graph
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler
from bid_ros.policy.runtimes.registry import build_runtime

TOLERANCE: Final = 1e-4  # of a network's output; relative where it is larger than 1
MOST_CALLS_OF_ONE_GRAPH: Final = 8  # more take long to compile
POINTS: Final = "points"
LARGEST: Final = 2_000_000_000  # bytes of a file of ONNX
Feeds = Mapping[str, NDArray[Any]]


class ImportedFramesGraph(nn.Module):  # type: ignore[misc]
    """The part of an encoder that reads images, of one instant."""

    def __init__(self, encoder: ObservationNetwork) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, *images: torch.Tensor) -> torch.Tensor:
        """Return features ``(1, P)`` of one image uint8 ``(1, h, w, 3)`` per camera."""
        return self.encoder.frame(*images)


class ImportedEncoderGraph(nn.Module):  # type: ignore[misc]
    """The rest of the encoder: features of all frames, where there are cameras, and vectors."""

    def __init__(self, encoder: ObservationNetwork) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Return the condition ``(1, C)`` of points ``(To, P)`` and vectors ``(To, S)``."""
        given = list(values)
        points = given.pop(0) if self.encoder.cameras else None
        return self.encoder.condition(points, dict(zip(self.encoder.vectors, given, strict=True)))


class ImportedSamplerGraph(nn.Module):  # type: ignore[misc]
    """All steps of the sampling from noise, with the denoiser inside."""

    def __init__(self, denoiser: nn.Module, settings: DiffusionConfig) -> None:
        super().__init__()
        self.denoiser, self.sampler = denoiser, Sampler(settings)

    def forward(self, noise: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return normalised chunks ``(N, H, D)`` of noise ``(noises, N, H, D)`` and condition ``(1, C)``."""
        return self.sampler.run(lambda sample, step: self.denoiser(sample, torch.from_numpy(step), condition), noise)


def write_graphs(policy: ImportedPolicy, folder: Path, strength: str) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of a policy; return their file names by role, and how they differ from PyTorch.

    Args:
        policy: with its weights.
        folder: of the bundle.
        strength: ``strong`` or ``weak``.

    Raises:
        BundleError: a graph differs from PyTorch or is too large, or a feature has a name that the graphs use.
    """
    cases = (policy.cases or _cases)(policy)
    roles, differences = {}, {}
    runtime = build_runtime("onnx")
    for role, (network, feeds, output, axes) in cases.items():
        size = sum(value.numel() * value.element_size() for value in network.state_dict().values())
        if size > LARGEST:
            raise BundleError(
                f"{strength} policy: {role} has weights of {size / 1e9:.1f} GB; valid is up to {LARGEST / 1e9:.0f} GB, "
                "which a file of ONNX holds"
            )
        roles[role] = f"{strength}_{role}.onnx"
        example = tuple(torch.from_numpy(value) for value in feeds.values())
        export_graph(
            network,
            example,
            folder / roles[role],
            input_names=list(feeds),
            output_names=[output],
            dynamic_axes=axes,
        )
        with torch.no_grad():
            expected = network(*example).numpy()
        found = runtime.load(folder / roles[role]).run(feeds)
        differences[role] = float(np.abs(found - expected).max())
        limit = TOLERANCE * max(1.0, float(np.abs(expected).max())) * (10 if role == "sampler" else 1)
        if not differences[role] <= limit:
            raise BundleError(
                f"{strength} policy: {role} differs from PyTorch by {differences[role]:.2e}; valid is up to {limit:.0e}"
            )
    return roles, differences


def _cases(policy: ImportedPolicy) -> dict[str, Case]:
    """Return network, example inputs, name of the output and open extents of each graph."""
    assert isinstance(policy.settings, DiffusionConfig)
    encoder, denoiser, rng = policy.encoder.eval(), policy.denoiser.eval(), np.random.default_rng(0)
    shapes = {item.name: item.shape for item in policy.features}
    steps, chunk = policy.observation_steps, (policy.horizon, policy.action_dim)

    def numbers(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape, dtype=np.float32)

    vectors = {name: numbers(steps, *shapes[name]) for name in encoder.vectors}
    cases: dict[str, Case] = {}
    points: dict[str, NDArray[Any]] = {}
    if encoder.cameras:
        if POINTS in vectors:
            raise BundleError(f"a vector beside cameras is named '{POINTS}'; valid is any other name")
        images = {name: rng.integers(0, 256, (1, *shapes[name]), np.uint8) for name in encoder.cameras}
        cases["frames"] = (ImportedFramesGraph(encoder).eval(), images, POINTS, {})
        points = {POINTS: numbers(steps, encoder.points)}
    cases["encoder"] = (ImportedEncoderGraph(encoder).eval(), {**points, **vectors}, "condition", {})
    condition = numbers(1, encoder.size(steps))
    level = np.array([policy.settings.train_steps // 2], dtype=np.int64)
    feeds: dict[str, NDArray[Any]] = {"sample": numbers(2, *chunk), "step": level, "condition": condition}
    axes = {"sample": {0: "samples"}, "prediction": {0: "samples"}}
    cases["denoiser"] = (denoiser, feeds, "prediction", axes)
    if policy.settings.calls <= MOST_CALLS_OF_ONE_GRAPH:
        graph = ImportedSamplerGraph(denoiser, policy.settings).eval()
        feeds = {"noise": numbers(graph.sampler.noises, 2, *chunk), "condition": condition}
        cases["sampler"] = (graph, feeds, "chunks", {"noise": {1: "samples"}, "chunks": {0: "samples"}})
    return cases

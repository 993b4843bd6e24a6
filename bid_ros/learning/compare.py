"""Compares an exported bundle with PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.task import Task
from bid_ros.learning.denoiser import Denoiser
from bid_ros.learning.graphs import EncoderGraph
from bid_ros.policy.diffusion.sampler import DdimSampler, DiffusionConfig, Samples
from bid_ros.policy.runtimes.base import Graph, Runtime


@dataclass(frozen=True)
class Difference:
    """Largest absolute differences between a runtime and PyTorch.

    Attributes:
        encoder: difference of the condition.
        denoiser: difference of single predictions, over noise levels and numbers of samples.
        chunk: difference of whole sampled chunks, normalised units: encoding and all denoising steps.
    """

    encoder: float
    denoiser: float
    chunk: float

    def check(self, tolerance: float, what: str) -> None:
        """Raise BundleError if a difference is above ``tolerance``; for a chunk, above ten times ``tolerance``."""
        for part, value, limit in (
            ("encoder", self.encoder, tolerance),
            ("denoiser", self.denoiser, tolerance),
            ("chunk", self.chunk, 10 * tolerance),
        ):
            if not value <= limit:
                raise BundleError(f"{what}: {part} differs from PyTorch by {value:.2e}; valid is up to {limit:.0e}")


def compare(
    encoder: EncoderGraph,
    denoiser: Denoiser,
    files: tuple[Path, Path],
    runtime: Runtime,
    task: Task,
    diffusion: DiffusionConfig,
) -> Difference:
    """Run the ONNX ``files`` (encoder, denoiser) beside the networks they were made from, on random inputs."""
    rng = np.random.default_rng(0)
    graph_encoder, graph_denoiser = (runtime.load(path) for path in files)
    encoder.eval(), denoiser.eval()
    encodings, steps, chunks = [0.0], [0.0], [0.0]
    for samples, level in ((1, 0), (3, diffusion.train_steps // 2), (16, diffusion.train_steps - 1)):
        feeds = _observation(task, rng)
        expected = _encode(encoder, feeds)
        condition = graph_encoder.run(feeds)
        encodings.append(_largest(condition, expected))
        noise = rng.standard_normal((samples, task.horizon, task.action_dim), dtype=np.float32)
        step = np.array([level], dtype=np.int64)
        steps.append(_largest(_run(graph_denoiser, noise, step, expected), _predict(denoiser, noise, step, expected)))
        chunks.append(_chunk_difference(graph_denoiser, denoiser, noise, condition, expected, diffusion))
    return Difference(max(encodings), max(steps), max(chunks))


def _chunk_difference(
    graph: Graph,
    denoiser: Denoiser,
    noise: Samples,
    condition: NDArray[np.float32],
    expected: NDArray[np.float32],
    diffusion: DiffusionConfig,
) -> float:
    sampler = DdimSampler(diffusion)
    ours = sampler.run(lambda sample, step: _run(graph, sample, step, condition), noise)
    theirs = sampler.run(lambda sample, step: _predict(denoiser, sample, step, expected), noise)
    return _largest(ours, theirs)


def _observation(task: Task, rng: np.random.Generator) -> dict[str, NDArray[np.uint8] | NDArray[np.float32]]:
    feeds: dict[str, NDArray[np.uint8] | NDArray[np.float32]] = {}
    for item in task.observation:
        shape = (task.observation_steps, *item.shape)
        image = item.kind == "image"
        feeds[item.name] = (
            rng.integers(0, 256, shape, dtype=np.uint8) if image else rng.uniform(-1, 1, shape).astype(np.float32)
        )
    return feeds


def _encode(encoder: EncoderGraph, feeds: Mapping[str, NDArray[np.uint8] | NDArray[np.float32]]) -> Samples:
    with torch.no_grad():
        result: Samples = encoder(*(torch.from_numpy(feeds[name]) for name in encoder.names)).numpy()
    return result


def _predict(denoiser: Denoiser, sample: Samples, step: NDArray[np.int64], condition: Samples) -> Samples:
    with torch.no_grad():
        result: Samples = denoiser(*(torch.from_numpy(value) for value in (sample, step, condition))).numpy()
    return result.copy()


def _run(graph: Graph, sample: Samples, step: NDArray[np.int64], condition: Samples) -> Samples:
    return graph.run({"sample": sample, "step": step, "condition": condition})


def _largest(ours: Samples, theirs: Samples) -> float:
    return float(np.abs(ours - theirs).max())

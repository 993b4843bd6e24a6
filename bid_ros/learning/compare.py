"""Compares an exported bundle with PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.denoiser import Denoiser
from bid_ros.learning.graphs import EncoderGraph
from bid_ros.policy.diffusion.sampler import Denoise, DiffusionConfig, Sampler, Samples
from bid_ros.policy.runtimes.base import Runtime


def compare(
    encoder: EncoderGraph,
    denoiser: Denoiser,
    files: Sequence[Path],
    runtime: Runtime,
    task: Task,
    diffusion: DiffusionConfig,
) -> dict[str, float]:
    """Run the ONNX ``files`` (encoder, denoiser, perhaps sampler) beside their networks, on random inputs.

    Returns:
        Largest absolute differences: ``encoder``, of the condition; ``denoiser``, of single predictions, over noise
        levels and numbers of samples; ``chunk``, of whole sampled chunks, normalised units: encoding and all denoising
        steps, in as many network calls and in one.
    """
    rng = np.random.default_rng(0)
    graph_encoder, graph_denoiser, *graph_samplers = (runtime.load(path) for path in files)
    encoder.eval(), denoiser.eval()
    sampler, found = Sampler(diffusion), []

    def ours(condition: Samples) -> Denoise:
        return lambda sample, step: graph_denoiser.run({"sample": sample, "step": step, "condition": condition})

    def theirs(condition: Samples) -> Denoise:
        return lambda sample, step: _run(denoiser, sample, step, condition)

    for samples, level in ((1, 0), (3, diffusion.train_steps // 2), (16, diffusion.train_steps - 1)):
        feeds = _observation(task, rng)
        expected, condition = _run(encoder, *(feeds[name] for name in encoder.names)), graph_encoder.run(feeds)
        noise = rng.standard_normal((sampler.noises, samples, task.horizon, task.action_dim), dtype=np.float32)
        step = np.array([level], dtype=np.int64)
        chunks = [sampler.run(ours(condition), noise)]
        chunks += [graph.run({"noise": noise, "condition": condition}) for graph in graph_samplers]
        pairs = (
            (condition, expected),
            (ours(expected)(noise[0], step), theirs(expected)(noise[0], step)),
            (np.stack(chunks), sampler.run(theirs(expected), noise)),
        )
        found.append([np.abs(one - other).max() for one, other in pairs])
    return dict(zip(("encoder", "denoiser", "chunk"), np.max(found, axis=0).tolist(), strict=True))


def _observation(task: Task, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    feeds = {}
    for item in task.observation:
        shape = (task.observation_steps, *item.shape)
        image = item.kind == "image"
        feeds[item.name] = rng.integers(0, 256, shape, dtype=np.uint8) if image else rng.uniform(-1, 1, shape)
    return {name: value if value.dtype == np.uint8 else value.astype(np.float32) for name, value in feeds.items()}


def _run(network: nn.Module, *values: NDArray[Any]) -> Samples:
    with torch.no_grad():
        result: Samples = network(*map(torch.from_numpy, values)).numpy()
    return result.copy()

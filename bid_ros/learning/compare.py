"""Compares an exported bundle with PyTorch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import scale_images
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.policy.base import Graphs
from bid_ros.policy.diffusion.sampler import Denoise, DiffusionConfig, Sampler, Samples
from bid_ros.policy.frame_encoder import FrameEncoder
from bid_ros.policy.runtimes.base import Runtime


def compare(
    networks: PolicyNetworks,
    files: Graphs,
    runtime: Runtime,
    task: Task,
    diffusion: DiffusionConfig,
) -> dict[str, float]:
    """Run the ONNX ``files`` of a policy beside its networks, on random inputs.

    Returns:
        Largest absolute differences: ``encoder``, of the condition; ``denoiser``, of single predictions, over noise
        levels and numbers of samples; ``chunk``, of whole sampled chunks, normalised units: encoding and all denoising
        steps, in as many network calls and in one.
    """
    rng = np.random.default_rng(0)
    graphs, denoiser = {role: runtime.load(path) for role, path in files.items()}, networks.eval().denoiser
    frames = FrameEncoder(graphs["frames"], networks.encoder.cameras) if "frames" in graphs else None
    sampler, found = Sampler(diffusion), []

    def ours(condition: Samples) -> Denoise:
        return lambda sample, step: graphs["denoiser"].run({"sample": sample, "step": step, "condition": condition})

    def theirs(condition: Samples) -> Denoise:
        return lambda sample, step: _run(denoiser, sample, step, condition)

    for samples, level in ((1, 0), (3, diffusion.train_steps // 2), (16, diffusion.train_steps - 1)):
        images, vectors = _observation(task, rng)
        expected = _condition(networks, images, vectors)
        condition = graphs["encoder"].run(vectors | ({"points": frames.points(images)} if frames else {}))
        noise = rng.standard_normal((sampler.noises, samples, task.horizon, task.action_dim), dtype=np.float32)
        step = np.array([level], dtype=np.int64)
        chunks = [sampler.run(ours(condition), noise)]
        if "sampler" in graphs:
            chunks.append(graphs["sampler"].run({"noise": noise, "condition": condition}))
        pairs = (
            (condition, expected),
            (ours(expected)(noise[0], step), theirs(expected)(noise[0], step)),
            (np.stack(chunks), sampler.run(theirs(expected), noise)),
        )
        found.append([np.abs(one - other).max() for one, other in pairs])
    return dict(zip(("encoder", "denoiser", "chunk"), np.max(found, axis=0).tolist(), strict=True))


def _observation(task: Task, rng: np.random.Generator) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return images and normalised vectors."""
    steps = task.observation_steps
    images = {item.name: rng.integers(0, 256, (steps, *item.shape), dtype=np.uint8) for item in task.cameras}
    return images, {item.name: rng.uniform(-1, 1, (steps, item.size)).astype(np.float32) for item in task.vectors}


def _condition(networks: PolicyNetworks, images: Mapping[str, Any], vectors: Mapping[str, Any]) -> Samples:
    with torch.no_grad():
        scaled = {name: scale_images(torch.from_numpy(value))[None] for name, value in images.items()}
        given = {name: torch.from_numpy(value)[None] for name, value in vectors.items()}
        condition: Samples = networks.encoder(scaled, given).numpy()
    return condition


def _run(network: nn.Module, *values: NDArray[Any]) -> Samples:
    with torch.no_grad():
        result: Samples = network(*map(torch.from_numpy, values)).numpy()
    return result.copy()

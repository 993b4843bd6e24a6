"""Trained networks as ONNX files, compared with PyTorch."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import scale_images
from bid_ros.learning.networks import Denoiser, PolicyNetworks
from bid_ros.policy.base import Graphs
from bid_ros.policy.diffusion.policy import ENCODING
from bid_ros.policy.diffusion.sampler import Denoise, DiffusionConfig, Sampler, Samples
from bid_ros.policy.graph_policy import FrameEncoder
from bid_ros.policy.runtimes.base import Runtime

OPSET: Final = 18
SMALLEST_HALF: Final = 256  # values; smaller tensors are not worth a cast


class FramesGraph(nn.Module):  # type: ignore[misc]
    """The part of an encoder that reads images, of one instant."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, *images: torch.Tensor) -> torch.Tensor:
        """Return points ``(1, P)`` of one image uint8 ``(1, h, w, 3)`` per camera."""
        pairs = zip(self.encoder.images, images, strict=True)
        return torch.cat([encoder(scale_images(image).permute(0, 3, 1, 2)) for encoder, image in pairs], dim=1)


class EncoderGraph(nn.Module):  # type: ignore[misc]
    """The encoder with the inputs of the graph contract: points of all frames where there are cameras, and vectors."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = (["points"] if encoder.cameras else []) + encoder.vectors

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Return the condition ``(1, C)`` of points ``(To, P)`` and vectors ``(To, S)``."""
        feeds = dict(zip(self.names, values, strict=True))
        cameras = len(self.encoder.cameras)
        points = feeds.pop("points").chunk(cameras, dim=1) if cameras else ()
        vectors = {name: value.unsqueeze(0) for name, value in feeds.items()}
        return self.encoder.finish(points, vectors)


class SamplerGraph(nn.Module):  # type: ignore[misc]
    """All steps of :class:`Sampler` from noise, with the denoiser inside: one network call for a decision's samples."""

    def __init__(self, denoiser: nn.Module, config: DiffusionConfig) -> None:
        super().__init__()
        self.denoiser, self.sampler = denoiser, Sampler(config)

    def forward(self, noise: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return normalised chunks ``(N, H, D)`` of noise ``(noises, N, H, D)`` and condition ``(1, C)``."""
        return self.sampler.run(lambda sample, step: self.denoiser(sample, torch.from_numpy(step), condition), noise)


def round_weights(network: nn.Module) -> None:
    """Round the weights to what half precision holds, in place, except tensors too small to be stored so."""
    with torch.no_grad():
        for weight in network.parameters():
            if weight.numel() >= SMALLEST_HALF:
                weight.copy_(weight.half().float())


def encoding_roles(task: Task) -> tuple[str, ...]:
    """Return the roles of the graphs that :func:`write_encoding` writes."""
    return ENCODING if task.cameras else ENCODING[1:]


def write_encoding(encoder: nn.Module, task: Task, files: Mapping[str, Path]) -> None:
    """Export an encoder: ``frames``, the part that reads images, where there are cameras, and ``encoder``, the rest.

    See :mod:`bid_ros.policy.diffusion.policy` for the contract.
    """
    steps, points = task.observation_steps, []
    if task.cameras:
        frames, images = FramesGraph(encoder), tuple(torch.zeros(1, *item.shape).byte() for item in task.cameras)
        names = [item.name for item in task.cameras]
        export_graph(frames, images, files["frames"], input_names=names, output_names=["points"])
        points.append(frames(*images).expand(steps, -1).detach().contiguous())
    graph = EncoderGraph(encoder)
    example = (*points, *(torch.zeros(steps, *item.shape) for item in task.vectors))
    export_graph(graph, example, files["encoder"], input_names=graph.names, output_names=["condition"])


def write_denoiser(denoiser: Denoiser, task: Task, condition: int, path: Path) -> None:
    """Export the denoiser for any number of samples."""
    example = (
        torch.zeros(2, task.horizon, task.action_dim),
        torch.zeros(1, dtype=torch.int64),
        torch.zeros(1, condition),
    )
    axes = {"sample": {0: "samples"}, "prediction": {0: "samples"}}
    names: dict[str, Any] = {"input_names": ["sample", "step", "condition"], "output_names": ["prediction"]}
    export_graph(denoiser, example, path, dynamic_axes=axes, **names)


def write_sampler(graph: SamplerGraph, task: Task, condition: int, path: Path) -> None:
    """Export the whole sampling for any number of samples."""
    example = (torch.zeros(graph.sampler.noises, 2, task.horizon, task.action_dim), torch.zeros(1, condition))
    axes = {"noise": {1: "samples"}, "chunks": {0: "samples"}}
    export_graph(graph, example, path, dynamic_axes=axes, input_names=["noise", "condition"], output_names=["chunks"])


def store_half(path: Path) -> None:
    """Rewrite a graph so that float32 weights which half precision holds exactly are stored in it."""
    model = onnx.load(path)
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if values.size < SMALLEST_HALF or not np.array_equal(half.astype(np.float32), values):
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    for node in reversed(casts):
        model.graph.node.insert(0, node)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def export_graph(network: nn.Module, example: tuple[torch.Tensor, ...], path: Path, **names: Any) -> None:
    """Export a network to an ONNX file. ``names`` are inputs, output and open extents as PyTorch takes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), example, str(path), opset_version=OPSET, dynamo=False, **names)


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

"""Trained networks as ONNX files, compared with PyTorch."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from bid_ros.core.observation import seen_by_network
from bid_ros.core.task import Task
from bid_ros.learning.batch import scale_images
from bid_ros.learning.denoiser import Denoiser, prefix_share
from bid_ros.learning.networks import CameraEncoders, PolicyNetworks
from bid_ros.policy.base import Graphs
from bid_ros.policy.committed import Prefix
from bid_ros.policy.diffusion.policy import ENCODING, predicting, sampler_feeds
from bid_ros.policy.diffusion.sampler import Denoise, DiffusionConfig, Sampler, Samples
from bid_ros.policy.graph_policy import FrameEncoder
from bid_ros.policy.runtimes.base import Runtime

OPSET: Final = 18
SMALLEST_HALF: Final = 256  # values; smaller tensors are not worth a cast


class FunctionGraph(nn.Module):  # type: ignore[misc]
    """A graph that computes a function with the weights of a network.

    Args:
        function: from the graph's inputs, in their order, to its output.
        network: the network by its name, which begins the names of its weights in the graph.
    """

    def __init__(self, function: Callable[..., torch.Tensor], **network: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in network.items():
            self.add_module(name, module)

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Return the function's result."""
        return self.function(*values)


def _frames(encoder: nn.Module, *images: torch.Tensor) -> torch.Tensor:
    """Return points ``(1, P)`` of one image ``(1, h, w, channels)`` per camera, as networks see it."""
    pairs = zip(encoder.images, images, strict=True)
    return torch.cat([encoder(scale_images(image).permute(0, 3, 1, 2)) for encoder, image in pairs], dim=1)


def graph_inputs(encoder: nn.Module) -> list[str]:
    """Return the inputs of the graph behind ``frames``: points of all frames, if there are cameras, and vectors."""
    return [*(["points"] if encoder.cameras else []), *encoder.vectors]


def _condition(encoder: nn.Module, *values: torch.Tensor) -> torch.Tensor:
    """Return the condition ``(1, C)`` of points ``(To, P)`` and vectors ``(To, S)``."""
    feeds = dict(zip(graph_inputs(encoder), values, strict=True))
    cameras = len(encoder.cameras)
    points = feeds.pop("points").chunk(cameras, dim=1) if cameras else ()
    return encoder.finish(points, {name: value.unsqueeze(0) for name, value in feeds.items()})


class SamplerGraph(nn.Module):  # type: ignore[misc]
    """All steps of :class:`Sampler` from noise, with the denoiser inside: one network call for a decision's samples."""

    def __init__(self, denoiser: nn.Module, config: DiffusionConfig) -> None:
        super().__init__()
        self.denoiser, self.sampler = denoiser, Sampler(config)

    def forward(self, noise: torch.Tensor, condition: torch.Tensor, *prefix: torch.Tensor) -> torch.Tensor:
        """Return normalised chunks ``(N, H, D)`` of noise ``(noises, N, H, D)`` and condition ``(1, C)``.

        ``prefix``: rows ``(1, H, D)`` and ``(1,)``, how many of the first are given clean; none for other policies.
        """

        def denoise(sample: torch.Tensor, step: NDArray[np.int64]) -> torch.Tensor:
            level = torch.from_numpy(step)
            if not prefix:
                return self.denoiser(sample, level, condition)
            rows, count = prefix
            share = prefix_share(count, self.denoiser.horizon).unsqueeze(-1)
            return self.denoiser(share * rows + (1 - share) * sample, level, condition, count)

        return self.sampler.run(denoise, noise)


def round_weights(network: nn.Module) -> None:
    """Round the weights to what half precision holds, in place, except tensors too small to be stored so."""
    with torch.no_grad():
        for weight in network.parameters():
            if weight.numel() >= SMALLEST_HALF:
                weight.copy_(weight.half().float())


def encoding_roles(task: Task) -> tuple[str, ...]:
    """Return the roles of the graphs that :func:`write_encoding` writes."""
    return ENCODING if task.cameras else ENCODING[1:]


def write_encoding(
    encoder: nn.Module, task: Task, files: Mapping[str, Path], graph: nn.Module | None = None, output: str = "condition"
) -> None:
    """Export an encoder: ``frames``, the part that reads images, where there are cameras, and ``encoder``, the rest.

    See :mod:`bid_ros.policy.diffusion.policy` for the contract.

    Args:
        encoder: with one image encoder a camera.
        task: names and shapes of the features.
        files: by role.
        graph: the rest. None: its method ``finish``.
        output: name of what it computes.
    """
    steps, feeds = task.observation_steps, dict[str, torch.Tensor]()
    if task.cameras:
        frames = FunctionGraph(partial(_frames, encoder), encoder=encoder)
        images = {
            item.name: torch.from_numpy(seen_by_network(item, np.zeros((1, *item.shape), item.dtype)))
            for item in task.cameras
        }
        export_graph(frames, images, files["frames"], "points")
        feeds["points"] = frames(*images.values()).expand(steps, -1).detach().contiguous()
    feeds |= {item.name: torch.zeros(steps, *item.shape) for item in task.vectors}
    graph = graph or FunctionGraph(partial(_condition, encoder), encoder=encoder)
    export_graph(graph, feeds, files["encoder"], output)


def write_denoiser(denoiser: Denoiser, task: Task, condition: int, path: Path) -> None:
    """Export the denoiser for any number of samples."""
    sample, step = torch.zeros(2, task.horizon, task.action_dim), torch.zeros(1, dtype=torch.int64)
    feeds = {"sample": sample, "step": step, "condition": torch.zeros(1, condition)}
    if denoiser.clean_step is not None:
        feeds["prefix_rows"] = torch.ones(1, dtype=torch.int64)
    export_graph(denoiser, feeds, path, "prediction", {"sample": {0: "samples"}, "prediction": {0: "samples"}})


def write_sampler(graph: SamplerGraph, task: Task, condition: int, path: Path) -> None:
    """Export the whole sampling for any number of samples."""
    noise = torch.zeros(graph.sampler.noises, 2, task.horizon, task.action_dim)
    feeds = {"noise": noise, "condition": torch.zeros(1, condition)}
    if graph.denoiser.clean_step is not None:
        feeds |= {"prefix": torch.zeros_like(noise[0, :1]), "prefix_rows": torch.ones(1, dtype=torch.int64)}
    export_graph(graph, feeds, path, "chunks", {"noise": {1: "samples"}, "chunks": {0: "samples"}})


def write_diffusion(networks: PolicyNetworks, task: Task, sampling: DiffusionConfig, files: Mapping[str, Path]) -> None:
    """Export the graphs of one policy, with the role ``sampler`` also its whole sampling."""
    condition = networks.encoder.condition
    write_encoding(networks.encoder, task, files)
    write_denoiser(networks.denoiser, task, condition, files["denoiser"])
    if "sampler" in files:
        write_sampler(SamplerGraph(networks.denoiser, sampling), task, condition, files["sampler"])


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


def export_graph(
    network: nn.Module,
    feeds: Mapping[str, torch.Tensor],
    path: Path,
    output: str,
    axes: Mapping[str, dict[int, str]] | None = None,
) -> None:
    """Export a network to an ONNX file.

    Args:
        network: takes the inputs in their order.
        feeds: an example of each input, by its name in the graph.
        path: of the file.
        output: name of what it computes.
        axes: name of each open extent, by input or output and its axis.
    """
    example, names = tuple(feeds.values()), {"input_names": list(feeds), "output_names": [output]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(), example, str(path), opset_version=OPSET, dynamo=False, dynamic_axes=axes, **names
        )


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
    rows = rng.uniform(-1, 1, (1, task.horizon, task.action_dim)).astype(np.float32)
    prefix = None if denoiser.clean_step is None else Prefix(rows, np.array([1], dtype=np.int64))

    def ours(condition: Samples) -> Denoise:
        return predicting(graphs["denoiser"], condition, prefix)

    def theirs(condition: Samples) -> Denoise:
        if prefix is None:
            return lambda sample, step: _run(denoiser, sample, step, condition)
        return lambda sample, step: _run(denoiser, prefix.put(sample), step, condition, prefix.count)

    for samples, level in ((1, 0), (3, diffusion.train_steps // 2), (16, diffusion.train_steps - 1)):
        feeds, points, vectors = random_feeds(task, rng, networks.encoder, frames)
        with torch.no_grad():
            expected = networks.encoder.finish(points, vectors).numpy()
        condition = graphs["encoder"].run(feeds)
        noise = rng.standard_normal((sampler.noises, samples, task.horizon, task.action_dim), dtype=np.float32)
        step = np.array([level], dtype=np.int64)
        chunks = [sampler.run(ours(condition), noise)]
        if "sampler" in graphs:
            chunks.append(graphs["sampler"].run({"noise": noise, "condition": condition, **sampler_feeds(prefix)}))
        pairs = (
            (condition, expected),
            (ours(expected)(noise[0], step), theirs(expected)(noise[0], step)),
            (np.stack(chunks), sampler.run(theirs(expected), noise)),
        )
        found.append([np.abs(one - other).max() for one, other in pairs])
    return dict(zip(("encoder", "denoiser", "chunk"), np.max(found, axis=0).tolist(), strict=True))


def random_feeds(
    task: Task, rng: np.random.Generator, encoder: CameraEncoders, frames: FrameEncoder | None
) -> tuple[dict[str, NDArray[Any]], list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return a random observation as the graph behind ``frames`` takes it, and by PyTorch: points and vectors, B = 1.

    Args:
        task: what is observed.
        rng: draws.
        encoder: of the images.
        frames: the graph that reads images, None without cameras.
    """
    steps = task.observation_steps
    drawn = {
        item.name: rng.integers(0, np.iinfo(item.dtype).max, (steps, *item.shape), np.dtype(item.dtype), endpoint=True)
        for item in task.cameras
    }
    images = {item.name: seen_by_network(item, drawn[item.name]) for item in task.cameras}
    vectors = {item.name: rng.uniform(-1, 1, (steps, item.size)).astype(np.float32) for item in task.vectors}
    with torch.no_grad():
        points = encoder.points({name: scale_images(torch.from_numpy(value))[None] for name, value in images.items()})
    given = {name: torch.from_numpy(value)[None] for name, value in vectors.items()}
    return vectors | ({} if frames is None else {"points": frames.points(images)}), points, given


def _run(network: nn.Module, *values: NDArray[Any]) -> Samples:
    with torch.no_grad():
        result: Samples = network(*map(torch.from_numpy, values)).numpy()
    return result.copy()

"""VQ-BeT as ONNX files, compared with PyTorch. The contract is in :mod:`bid_ros.policy.vqbet.policy`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import scale_images
from bid_ros.learning.graphs import FramesGraph, export_graph, round_weights, store_half
from bid_ros.learning.vqbet.coder import Coder
from bid_ros.learning.vqbet.network import VqBetNetworks
from bid_ros.policy.base import Graphs
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.runtimes.registry import build_runtime

TRIALS = 3


class ForecastGraph(nn.Module):  # type: ignore[misc]
    """The network with the inputs of the graph contract: points of all frames where there are cameras, and vectors."""

    def __init__(self, networks: VqBetNetworks) -> None:
        super().__init__()
        self.networks = networks
        self.names = (["points"] if networks.cameras else []) + networks.vectors

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Return the forecast ``(1, ...)`` of points ``(To, P)`` and vectors ``(To, S)``."""
        feeds = {name: value.unsqueeze(0) for name, value in zip(self.names, values, strict=True)}
        cameras = len(self.networks.cameras)
        points = feeds.pop("points").chunk(cameras, dim=-1) if cameras else ()
        return self.networks.forecast(points, feeds).flat()


class DecoderGraph(nn.Module):  # type: ignore[misc]
    """What codes stand for."""

    def __init__(self, coder: Coder) -> None:
        super().__init__()
        self.coder = coder

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Return normalised rows ``(N, R, D)`` of codes ``(N, 2)``."""
        return self.coder.decode(codes)


def write_decoder(coder: Coder, path: Path) -> None:
    """Export the decoder for any number of samples."""
    axes = {"codes": {0: "samples"}, "rows": {0: "samples"}}
    example = (torch.zeros(2, 2, dtype=torch.int64),)
    export_graph(DecoderGraph(coder), example, path, dynamic_axes=axes, input_names=["codes"], output_names=["rows"])


def write_forecast(graph: nn.Module, example: Mapping[str, torch.Tensor], path: Path) -> None:
    """Export a network from inputs by name to a forecast."""
    export_graph(graph, tuple(example.values()), path, input_names=list(example), output_names=["forecast"])


def write_vqbet(
    networks: VqBetNetworks, out: Path, task: Task, strength: str, half: bool = True
) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of one policy; return their file names by role, and how they differ from PyTorch.

    Args:
        networks: of the policy. With ``half`` their weights are rounded, in place.
        out: folder of the bundle.
        task: of the policy.
        strength: ``strong`` or ``weak``.
        half: store weights as float16.
    """
    roles = ("frames", "encoder", "decoder") if networks.cameras else ("encoder", "decoder")
    names = {role: f"{strength}_{role}.onnx" for role in roles}
    files = {role: out / name for role, name in names.items()}
    networks.eval()
    if half:
        round_weights(networks)
    steps, example = task.observation_steps, dict[str, torch.Tensor]()
    if networks.cameras:
        frames, images = FramesGraph(networks), tuple(torch.zeros(1, *item.shape).byte() for item in task.cameras)
        export_graph(frames, images, files["frames"], input_names=networks.cameras, output_names=["points"])
        example["points"] = frames(*images).expand(steps, -1).detach().contiguous()
    example |= {item.name: torch.zeros(steps, *item.shape) for item in task.vectors}
    write_forecast(ForecastGraph(networks), example, files["encoder"])
    write_decoder(networks.net.coder, files["decoder"])
    if half:
        for path in files.values():
            store_half(path)
    return names, compare_vqbet(networks, files, build_runtime("onnx"), task)


def compare_vqbet(networks: VqBetNetworks, files: Graphs, runtime: Runtime, task: Task) -> dict[str, float]:
    """Run the ONNX ``files`` of a policy beside its networks, on random inputs.

    Returns:
        Largest absolute differences: ``encoder``, of the forecast; ``decoder``, of all rows, normalised units.
    """
    graphs, rng = {role: runtime.load(path) for role, path in files.items()}, np.random.default_rng(0)
    forecasts = [_both(networks, graphs, task, rng) for _ in range(TRIALS)]
    total = networks.net.heads.codes
    pairs = torch.cartesian_prod(torch.arange(total), torch.arange(total))
    with torch.no_grad():
        rows = networks.net.coder.decode(pairs).numpy()
    decoded = graphs["decoder"].run({"codes": pairs.numpy()})
    return {
        "encoder": max(float(np.abs(ours - theirs).max()) for ours, theirs in forecasts),
        "decoder": float(np.abs(decoded - rows).max()),
    }


def _both(
    networks: VqBetNetworks, graphs: Mapping[str, Any], task: Task, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the forecast of a random observation by the graphs, and by PyTorch."""
    steps = task.observation_steps
    images = [rng.integers(0, 256, (steps, *item.shape), dtype=np.uint8) for item in task.cameras]
    vectors = {item.name: rng.uniform(-1, 1, (steps, item.size)).astype(np.float32) for item in task.vectors}
    feeds: dict[str, NDArray[Any]] = dict(vectors)
    if images:
        each = [
            graphs["frames"].run(dict(zip(networks.cameras, frame, strict=True)))
            for frame in zip(*([image[:, None] for image in images]), strict=True)
        ]
        feeds["points"] = np.concatenate(each)
    with torch.no_grad():
        points = [
            encoder(scale_images(torch.from_numpy(image)).permute(0, 3, 1, 2))[None]
            for encoder, image in zip(networks.images, images, strict=True)
        ]
        given = {name: torch.from_numpy(value)[None] for name, value in vectors.items()}
        theirs: NDArray[np.float32] = networks.forecast(points, given).flat().numpy()
    return graphs["encoder"].run(feeds), theirs

"""VQ-BeT as ONNX files, compared with PyTorch. The contract is in :mod:`bid_ros.policy.vqbet.policy`."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from bid_ros.core.task import Task
from bid_ros.learning.graphs import FunctionGraph, export_graph, graph_inputs, random_feeds, write_encoding
from bid_ros.learning.vqbet.coder import Coder
from bid_ros.learning.vqbet.network import VqBetNetworks
from bid_ros.policy.base import Graphs
from bid_ros.policy.graph_policy import FrameEncoder
from bid_ros.policy.runtimes.base import Runtime

TRIALS = 3


def decoder_graph(coder: Coder) -> FunctionGraph:
    """Return the graph from codes ``(N, 2)`` to normalised rows ``(N, R, D)``."""
    return FunctionGraph(coder.decode, coder=coder)


def write_decoder(coder: Coder, path: Path) -> None:
    """Export the decoder for any number of samples."""
    feeds = {"codes": torch.zeros(2, 2, dtype=torch.int64)}
    export_graph(decoder_graph(coder), feeds, path, "rows", {"codes": {0: "samples"}, "rows": {0: "samples"}})


def write_vqbet(networks: VqBetNetworks, task: Task, files: Mapping[str, Path]) -> None:
    """Export the graphs of one policy."""

    def forecast(*values: torch.Tensor) -> torch.Tensor:
        feeds = {name: value.unsqueeze(0) for name, value in zip(graph_inputs(networks), values, strict=True)}
        cameras = len(networks.cameras)
        points = feeds.pop("points").chunk(cameras, dim=-1) if cameras else ()
        return networks.forecast(points, feeds).flat()

    write_encoding(networks, task, files, FunctionGraph(forecast, networks=networks), "forecast")
    write_decoder(networks.net.coder, files["decoder"])


def compare_vqbet(networks: VqBetNetworks, files: Graphs, runtime: Runtime, task: Task) -> dict[str, float]:
    """Run the ONNX ``files`` of a policy beside its networks, on random inputs.

    Returns:
        Largest absolute differences: ``encoder``, of the forecast; ``decoder``, of all rows, normalised units.
    """
    graphs, rng = {role: runtime.load(path) for role, path in files.items()}, np.random.default_rng(0)
    frames = FrameEncoder(graphs["frames"], networks.cameras) if "frames" in graphs else None
    total, found = networks.net.heads.codes, []
    pairs = torch.cartesian_prod(torch.arange(total), torch.arange(total))
    with torch.no_grad():
        for _ in range(TRIALS):
            feeds, points, vectors = random_feeds(task, rng, networks, frames)
            forecast = networks.forecast(points, vectors).flat().numpy()
            found.append(float(np.abs(graphs["encoder"].run(feeds) - forecast).max()))
        rows = networks.net.coder.decode(pairs).numpy()
    decoded = graphs["decoder"].run({"codes": pairs.numpy()})
    return {"encoder": max(found), "decoder": float(np.abs(decoded - rows).max())}

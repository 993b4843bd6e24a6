"""ACT as ONNX files, compared with PyTorch. The contract is in :mod:`bid_ros.policy.act.policy`."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from bid_ros.core.task import Task
from bid_ros.learning.act.network import ActNetworks
from bid_ros.learning.graphs import FunctionGraph, graph_inputs, random_feeds, write_encoding
from bid_ros.policy.base import Graphs
from bid_ros.policy.graph_policy import FrameEncoder
from bid_ros.policy.runtimes.base import Runtime

TRIALS = 3


def write_act(networks: ActNetworks, task: Task, files: Mapping[str, Path]) -> None:
    """Export the graphs of one policy, without what only training needs."""

    def chunk(*values: torch.Tensor) -> torch.Tensor:
        feeds = {name: value.unsqueeze(0) for name, value in zip(graph_inputs(networks), values, strict=True)}
        cameras = len(networks.cameras)
        points = feeds.pop("points").chunk(cameras, dim=-1) if cameras else ()
        return networks(networks.tokens(points, feeds)).flatten(1)

    write_encoding(networks, task, files, FunctionGraph(chunk, net=networks.net), "chunk")


def compare_act(networks: ActNetworks, files: Graphs, runtime: Runtime, task: Task) -> dict[str, float]:
    """Run the ONNX ``files`` of a policy beside its networks, on random inputs.

    Returns:
        Largest absolute difference: ``encoder``, of the chunk, normalised units.
    """
    graphs, rng, found = {role: runtime.load(path) for role, path in files.items()}, np.random.default_rng(0), []
    frames = FrameEncoder(graphs["frames"], networks.cameras) if "frames" in graphs else None
    with torch.no_grad():
        for _ in range(TRIALS):
            feeds, points, vectors = random_feeds(task, rng, networks, frames)
            wanted = networks(networks.tokens(points, vectors)).flatten(1).numpy()
            found.append(float(np.abs(graphs["encoder"].run(feeds) - wanted).max()))
    return {"encoder": max(found)}

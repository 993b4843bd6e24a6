"""What this machine delivers: multiply-adds and bytes a second, measured."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from bid_ros.policy.runtimes.base import Graph, Runtime

SIZES: Final = (512, 1024)  # of the matrix product
_TRIES: Final = 5
_LEAST_BYTES: Final = 1e6
_MOST_BYTES: Final = 256e6


class Machine:
    """Measures the rates of a float32 matrix product and of a triad ``a = b + 2 c``.

    Args:
        runtime: runs the product, as it runs the policy.
        working_set: bytes of the triad's three arrays, between 1 and 256 MB. A small network stays in the caches, which
            are faster than the memory.
    """

    def __init__(self, runtime: Runtime, working_set: float) -> None:
        rng = np.random.default_rng(0)
        length = int(min(max(working_set, _LEAST_BYTES), _MOST_BYTES) / 4 / 3)
        self._into = torch.empty(length)
        self._from = torch.ones(length), torch.ones(length)
        self._flops: list[float] = []
        self._bytes: list[float] = []
        graphs = {size: _product(runtime, size, rng) for size in SIZES}
        feeds = {size: rng.standard_normal((size, size), dtype=np.float32) for size in SIZES}
        self._size = max(
            SIZES, key=lambda size: size**3 / min(_seconds(lambda: graphs[size].run({"x": feeds[size]}), 1 + _TRIES))
        )
        self._graph, self._feed = graphs[self._size], feeds[self._size]
        for _ in range(_TRIES):  # a median of few would be chance
            self.measure()

    def measure(self) -> None:
        """Measure both once. Call it between the decisions that the rates are compared with."""
        took = min(_seconds(lambda: self._graph.run({"x": self._feed}), 1))
        self._flops.append(2 * self._size**3 / took)
        triad = min(_seconds(lambda: torch.add(*self._from, alpha=2.0, out=self._into), _TRIES))
        self._bytes.append(3 * 4 * len(self._into) / triad)

    @property
    def flops_per_s(self) -> float:
        """Median rate of the product."""
        return float(np.median(self._flops))

    @property
    def bytes_per_s(self) -> float:
        """Median rate of the triad: two arrays read and one written."""
        return float(np.median(self._bytes))

    @property
    def best(self) -> tuple[float, float]:
        """Highest rates of product and triad."""
        return max(self._flops), max(self._bytes)


def _product(runtime: Runtime, size: int, rng: np.random.Generator) -> Graph:
    """Return the product of an input ``x`` ``(size, size)`` with a constant matrix as a graph."""
    matrix = numpy_helper.from_array(rng.standard_normal((size, size), dtype=np.float32), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, size]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", ends[:1], ends[1:], [matrix])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "product.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        return runtime.load(path)


def _seconds(function: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return found

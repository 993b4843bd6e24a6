"""The seam between the policy and the library that runs its ONNX graphs.

Every runtime computes in float32, whatever the storage type of the weights and whatever the processor offers, so
two runtimes differ by rounding only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import BidError

RUNTIMES: Final = ("auto", "openvino", "onnx")


@dataclass(frozen=True)
class TensorSpec:
    """Shape (None = any extent) and element type of a graph's input or output."""

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]


class Graph(Protocol):
    """A loaded network with named inputs and one output.

    Attributes:
        inputs: per input name its shape and type.
        output: shape and type of the output.
    """

    inputs: Mapping[str, TensorSpec]
    output: TensorSpec

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the output. ``feeds`` names every input; the result is the caller's own array."""
        ...


class Runtime(Protocol):
    """Loads graphs.

    Attributes:
        name: registry name.
    """

    name: str

    def load(self, path: Path) -> Graph:
        """Load one ONNX file; BundleError if it is not a graph that this runtime can run."""
        ...


def build_runtime(name: str = "auto", threads: int = 1) -> Runtime:
    """Return the runtime of that name.

    Args:
        name: ``openvino`` (CPU), ``onnx`` (onnxruntime on the CPU) or ``auto``: OpenVINO where it is installed.
        threads: threads one network call may use. Calls come one at a time.

    Raises:
        BidError: if the name is unknown, its library is not installed or ``threads`` is below 1.
    """
    if name not in RUNTIMES:
        raise BidError(f"runtime is '{name}'; valid are {', '.join(RUNTIMES)}")
    if threads < 1:
        raise BidError(f"inference threads are {threads}; valid is 1 or more")
    if name == "auto":
        name = "openvino" if importlib.util.find_spec("openvino") else "onnx"
    try:
        if name == "openvino":
            from bid_ros.policy.runtime_openvino import OpenVinoRuntime

            return OpenVinoRuntime(threads)
        from bid_ros.policy.runtime_onnx import OnnxRuntime

        return OnnxRuntime(threads)
    except ImportError as error:
        raise BidError(f"runtime '{name}' cannot be used, its library does not import: {error}") from error

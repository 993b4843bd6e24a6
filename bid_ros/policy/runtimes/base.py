"""The interface between a policy and the library that runs its ONNX graphs.

Unless its name says ``fp16``, a runtime computes in float32, whatever type the weights are stored in and whatever the
processor offers. So two runtimes differ only by rounding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


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
        """Compute the output. ``feeds`` has every input by name. The caller owns the result."""


class Runtime(Protocol):
    """Loads graphs.

    Attributes:
        name: registry name.
    """

    name: str

    def load(self, path: Path) -> Graph:
        """Load one ONNX file. Raises BundleError if this runtime cannot run it."""

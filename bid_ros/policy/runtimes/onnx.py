"""onnxruntime on the CPU. Its CPU kernels compute float32 graphs in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.policy.runtimes.base import TensorSpec

_TYPES: Final = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64}


class OnnxRuntime:
    """Loads graphs into onnxruntime sessions of ``threads`` threads."""

    name = "onnx"

    def __init__(self, threads: int) -> None:
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.inter_op_num_threads = 1
        self._options.log_severity_level = 3
        # Idle worker threads must not spin: they would take the processor from other nodes.
        self._options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    def load(self, path: Path) -> OnnxGraph:
        """Load one ONNX file. Raises BundleError if onnxruntime cannot read or run it."""
        try:
            session = onnxruntime.InferenceSession(str(path), self._options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base but this
            raise BundleError(
                f"{path} is not a graph that onnxruntime can run: {' '.join(str(error).split())}"
            ) from error
        return OnnxGraph(session)


class OnnxGraph:
    """One onnxruntime session.

    Attributes:
        symbols: shape of each input by its name, and of the output by ``""``; an open extent has its name in the graph.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._output_names = [session.get_outputs()[0].name]
        self.inputs: Mapping[str, TensorSpec] = {item.name: _spec(item) for item in session.get_inputs()}
        self.output = _spec(session.get_outputs()[0])
        self.symbols: Mapping[str, Sequence[str | int]] = {
            **{item.name: item.shape for item in session.get_inputs()},
            "": session.get_outputs()[0].shape,
        }

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the output."""
        result: NDArray[Any] = self._session.run(self._output_names, feeds)[0]
        return result


def _spec(item: Any) -> TensorSpec:
    shape = tuple(extent if isinstance(extent, int) else None for extent in item.shape)
    return TensorSpec(shape, np.dtype(_TYPES.get(item.type, np.object_)))

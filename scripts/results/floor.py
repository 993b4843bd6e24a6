"""The least that a network call can take: its multiply-adds and bytes, over what a machine delivers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from bid_ros.core.errors import BundleError

FLOAT_BYTES: Final = 4  # every runtime computes in float32, whatever type the weights are stored in
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """What a computation does at least.

    Attributes:
        flops: additions and multiplications of convolutions and matrix products. Products with the zeros that pad a
            convolution do not count.
        bytes: of what these read and write, every tensor once: weights, their inputs and outputs, and the inputs and
            outputs of the whole.
    """

    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, calls: int) -> "Work":
        return Work(self.flops * calls, self.bytes * calls)

    def seconds(self, flops_per_s: float, bytes_per_s: float) -> float:
        """Return the floor: no less than the arithmetic takes, and no less than the memory takes."""
        return max(self.flops / flops_per_s, self.bytes / bytes_per_s)


def operations(graph: str | Path | onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> Work:
    """Count what one call of a graph does. The count does not depend on the library that runs the graph.

    onnxruntime runs the graph once, on zeros, because only then all shapes are known.

    Args:
        graph: an ONNX file, or a model in memory.
        shapes: the shape of each input whose shape the graph leaves open.

    Raises:
        BundleError: the graph does not run with these shapes.
    """
    model = onnx.ModelProto()
    model.CopyFrom(graph if isinstance(graph, onnx.ModelProto) else onnx.load(graph))
    counted = [node for node in model.graph.node if node.op_type in _FLOPS]
    known = _shapes(model, counted, shapes)
    flops, touched = 0.0, {item.name for item in (*model.graph.input, *model.graph.output)}
    for node in counted:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        inputs = [name for name in node.input if name]
        flops += _FLOPS[node.op_type]([known[name] for name in inputs], known[node.output[0]], attributes)
        touched.update((*inputs, *node.output))
    sizes = _element_bytes(model.graph)
    return Work(flops, float(sum(prod(known[name]) * sizes.get(name, FLOAT_BYTES) for name in touched)))


def _shapes(
    model: onnx.ModelProto, counted: Sequence[onnx.NodeProto], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Shape]:
    """Return the shape of each input, output and weight, and of every tensor that ``counted`` reads or writes."""
    graph = model.graph
    known: dict[str, Shape] = {item.name: tuple(item.dims) for item in graph.initializer}
    feeds = {}
    for item in graph.input:
        kind = item.type.tensor_type
        extents = shapes.get(item.name) or [extent.dim_value for extent in kind.shape.dim]
        feeds[item.name] = np.zeros(extents, helper.tensor_dtype_to_np_dtype(kind.elem_type))
        known[item.name] = feeds[item.name].shape
    wanted = {name for node in counted for name in (*node.input, *node.output) if name} - set(known)
    wanted |= {item.name for item in graph.output}
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    del watched.graph.output[:]
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in sorted(wanted))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(watched.SerializeToString(), options, ["CPUExecutionProvider"])
        found = session.run(sorted(wanted), feeds)
    except Exception as error:  # onnxruntime's exceptions have no common base but this
        raise BundleError(f"graph {graph.name} does not run for {shapes}: {' '.join(str(error).split())}") from error
    return known | {name: value.shape for name, value in zip(sorted(wanted), found, strict=True)}


def _element_bytes(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the bytes of an element of the graph's own inputs: images are bytes."""
    types = {item.name: item.type.tensor_type.elem_type for item in graph.input}
    return {name: helper.tensor_dtype_to_np_dtype(kind).itemsize for name, kind in types.items()}


def _gemm(inputs: list[Shape], output: Shape, attributes: Mapping[str, Any]) -> float:
    return 2.0 * prod(output) * inputs[0][0 if attributes.get("transA") else 1]


def _matmul(inputs: list[Shape], output: Shape, attributes: Mapping[str, Any]) -> float:
    return 2.0 * prod(output) * inputs[0][-1]


def _conv(inputs: list[Shape], output: Shape, attributes: Mapping[str, Any]) -> float:
    batch, channels, *extents = output
    return 2.0 * batch * channels * inputs[1][1] * _taps(extents, inputs[0][2:], inputs[1][2:], attributes)


def _conv_transpose(inputs: list[Shape], output: Shape, attributes: Mapping[str, Any]) -> float:
    # The gradient of a convolution from the output to the input: it has the same products.
    batch, channels, *extents = inputs[0]
    return 2.0 * batch * channels * inputs[1][1] * _taps(extents, output[2:], inputs[1][2:], attributes)


def _taps(outputs: Sequence[int], inputs: Sequence[int], kernel: Sequence[int], attributes: Mapping[str, Any]) -> int:
    """Return the number of pairs of an output position and a tap that lies inside the input."""
    ones = [1] * len(kernel)
    strides, dilations = attributes.get("strides", ones), attributes.get("dilations", ones)
    pads = attributes.get("pads", [0] * 2 * len(kernel))
    return prod(
        sum(0 <= place * stride + tap * dilation - pad < extent for place in range(count) for tap in range(size))
        for count, extent, size, stride, dilation, pad in zip(
            outputs, inputs, kernel, strides, dilations, pads, strict=False
        )
    )


_FLOPS: Final[Mapping[str, Callable[[list[Shape], Shape, Mapping[str, Any]], float]]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
}

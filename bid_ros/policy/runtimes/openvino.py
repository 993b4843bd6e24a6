"""OpenVINO on the CPU, three to four times faster than onnxruntime on small one-dimensional convolutions.

Precision is pinned to float32. By default OpenVINO chooses bfloat16 on processors that have it, which changed
unit-scale outputs by up to 0.017.

Convolutions along time are rewritten so that its CPU plugin has fast kernels for them. The results are the same. Chunks
are short: 16 steps, 4 at the lowest level of a U-Net. Kernels work along the last axis, so a convolution along time
fills their vectors badly. With the samples as the last axis, and time as the one before, it is a convolution of two
dimensions whose kernel is 1 wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import Model, Node, Output
from openvino import opset13 as op

from bid_ros.core.errors import BundleError
from bid_ros.policy.runtimes.base import TensorSpec

# Below this the two transpositions cost more than they gain (measured).
LEAST_SAMPLES: Final = 4
LEAST_WEIGHTS: Final = 80_000


def rewrite_convolutions(model: Model) -> None:
    """Rewrite a model of fixed shapes, in place.

    1. A transposed convolution that doubles the time axis (4 taps, stride 2) becomes a convolution that computes even
       and odd steps as channels. The plugin has no fast kernel for the transposed one.
    2. A wide convolution ``(N, C, T)`` of several samples becomes one over ``(1, C, T, N)``.
    """
    for node in model.get_ordered_ops():
        if node.get_type_name() == "ConvolutionBackpropData" and _doubles_time(node):
            _replace(node, _even_and_odd(node.input_value(0), node.input_value(1)))
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Convolution" and _is_wide(node):
            _replace(*_over_samples(node))
    model.validate_nodes_and_infer_types()


def _doubles_time(node: Node) -> bool:
    settings, weights = node.get_attributes(), node.input_value(1).get_partial_shape()
    return bool(
        weights.is_static
        and weights.rank.get_length() == 3
        and weights[2].get_length() == 4
        and node.get_input_size() == 2
        and [list(settings[name]) for name in ("strides", "dilations", "pads_begin", "pads_end", "output_padding")]
        == [[2], [1], [1], [1], [0]]
    )


def _is_wide(node: Node) -> bool:
    values, weights = (node.input_value(place).get_partial_shape() for place in (0, 1))
    return bool(
        values.is_static
        and weights.is_static
        and values.rank.get_length() == 3
        and values[0].get_length() >= LEAST_SAMPLES
        and np.prod(weights.to_shape()) >= LEAST_WEIGHTS
    )


def _even_and_odd(values: Output, weights: Output) -> Node:
    """Step 2t sees taps 3 and 1 of steps t - 1 and t; step 2t + 1 sees taps 2 and 0 of steps t and t + 1."""
    samples, inputs, steps = values.get_shape()
    outputs = weights.get_shape()[1]
    taps = op.split(op.transpose(weights, [1, 0, 2]), 2, 4).outputs()
    nothing = op.constant(np.zeros((outputs, inputs, 1), np.float32))
    even, odd = op.concat([taps[3], taps[1], nothing], 2), op.concat([nothing, taps[2], taps[0]], 2)
    both = op.convolution(values, op.concat([even, odd], 0), [1], [1], [1], [1])
    apart = op.transpose(op.reshape(both, [samples, 2, outputs, steps], False), [0, 2, 3, 1])
    return op.reshape(apart, [samples, outputs, 2 * steps], False)


def _over_samples(node: Node) -> tuple[Node, Node]:
    """Return the node to replace, which is the sum with the bias where there is one, and its replacement."""
    settings = node.get_attributes()
    begin, end, stride, dilation = (settings[name][0] for name in ("pads_begin", "pads_end", "strides", "dilations"))
    values = op.unsqueeze(op.transpose(node.input_value(0), [1, 2, 0]), 0)
    result = op.convolution(
        values, op.unsqueeze(node.input_value(1), 3), [stride, 1], [begin, 0], [end, 0], [dilation, 1]
    )
    old, bias = node, _bias(node)
    if bias is not None:
        old, result = bias[0], op.add(result, op.unsqueeze(bias[1], 3))
    return old, op.transpose(op.squeeze(result, 0), [2, 0, 1])


def _bias(node: Node) -> tuple[Node, Output] | None:
    """Return the only reader of a convolution's values and what it adds, if that is a number a channel."""
    inputs = node.output(0).get_target_inputs()
    readers = [reader for reader in inputs if reader.get_node().get_type_name() != "ShapeOf"]
    if len(readers) != 1 or readers[0].get_node().get_type_name() != "Add":
        return None
    added: Any = readers[0].get_node().input_value(1)
    shape = added.get_partial_shape()
    fits = shape.is_static and list(shape.to_shape()) == [1, node.get_output_shape(0)[1], 1]
    return (readers[0].get_node(), added) if fits and readers[0].get_index() == 0 else None


def _replace(old: Node, new: Node) -> None:
    for reader in list(old.output(0).get_target_inputs()):
        reader.replace_source_output(new.output(0))


class OpenVinoRuntime:
    """Loads graphs into OpenVINO's CPU plugin with ``threads`` threads."""

    name = "openvino"

    def __init__(self, threads: int) -> None:
        self._core = openvino.Core()
        self._options: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            # Several processes share the cores. A network pinned to one core would wait for the others.
            "ENABLE_CPU_PINNING": False,
        }

    def load(self, path: Path) -> OpenVinoGraph:
        """Load one ONNX file. Raises BundleError if OpenVINO cannot read it."""
        try:
            return OpenVinoGraph(self._core, self._core.read_model(str(path)), self._options)
        except RuntimeError as error:
            raise BundleError(f"{path} is not a graph that OpenVINO can run: {' '.join(str(error).split())}") from error


class OpenVinoGraph:
    """One graph, compiled once for each combination of input shapes.

    Fixed shapes run about a quarter faster than dynamic ones. Compiling takes tenths of a second. So run a new shape
    once before it has to be fast.
    """

    def __init__(self, core: Any, model: Any, options: Mapping[str, Any]) -> None:
        self._core, self._model, self._options = core, model, options
        self._bound: dict[tuple[tuple[int, ...], ...], _Bound] = {}
        self.inputs: Mapping[str, TensorSpec] = {item.get_any_name(): _spec(item) for item in model.inputs}
        self.output = _spec(model.outputs[0])

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the output."""
        shapes = tuple(feeds[name].shape for name in self.inputs)
        bound = self._bound.get(shapes)
        if bound is None:
            bound = self._bound[shapes] = _Bound(self._compile(shapes), self.inputs)
        return bound.run(feeds)

    def _compile(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        model = self._model.clone()
        try:
            model.reshape(dict(zip(self.inputs, (list(shape) for shape in shapes), strict=True)))
            rewrite_convolutions(model)
            try:
                compiled = self._core.compile_model(model, "CPU", dict(self._options))
            except RuntimeError:
                # OpenVINO 2026.4 fails on a Mish between two matrix products of few rows, as in the time embedding
                # of a diffusion policy, when it fuses them. Unfused it compiles, and is about a tenth slower.
                compiled = self._core.compile_model(model, "CPU", {**self._options, "SNIPPETS_MODE": "DISABLE"})
        except RuntimeError as error:
            raise BundleError(
                f"a graph does not compile for inputs {shapes}: {' '.join(str(error).split())}"
            ) from error
        return compiled.create_infer_request()


class _Bound:
    """A request and its own memory. To copy inputs there is 0.1 ms quicker than to give them with each call."""

    def __init__(self, request: Any, names: Iterable[str]) -> None:
        self._request = request
        self._inputs = {name: request.get_tensor(name).data for name in names}
        self._output: NDArray[Any] = request.get_output_tensor(0).data

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        for name, memory in self._inputs.items():
            np.copyto(memory, feeds[name])
        self._request.infer()
        return self._output.copy()


def _spec(item: Any) -> TensorSpec:
    shape = tuple(extent.get_length() if extent.is_static else None for extent in item.get_partial_shape())
    return TensorSpec(shape, np.dtype(item.get_element_type().to_dtype()))
